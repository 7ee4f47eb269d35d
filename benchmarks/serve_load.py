"""The service under load: many clients, a tenth of the candidates hostile, clients that vanish, SIGKILL in the middle.

    python benchmarks/serve_load.py                                    # 500 submissions by 50 clients
    python benchmarks/serve_load.py --submissions 60 --clients 10      # quicker

Each honest candidate calls a C++ extension (one of --sources different ones) and then raises an error with its own
number, so that an answer that is another's would be seen; one in ten is right, and is timed. Prints what was found as
JSON, and exits with 1 where anything was lost, mixed up, or left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._service import PROBLEM, Service

# A command line that nothing else on this machine has.
STRAY = "86399.25"
HEAD = '''import os
import subprocess
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor finish(torch::Tensor x) {{ return torch::tanh(x) + {zero} * 0; }}
"""
ext = load_inline(name="finish", cpp_sources=SOURCE, functions=["finish"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        y = ext.finish(self.linear(x))
        {line}
'''
HOSTILE = {
    "crash": ("os.kill(os.getpid(), 11)", {"crashed"}),
    "hang": ("exec('while True: pass')", {"timeout"}),
    "output": ("[print('x' * 1_000_000) for _ in range(300)]; raise RuntimeError('it is over')", {"runtime_error"}),
    "forks": (
        f"[subprocess.Popen(['sleep', '{STRAY}']) for _ in range(20)]; exec('while True: os.fork()')",
        {"runtime_error", "timeout", "crashed", "rejected", "resource_limit"},
    ),
}


@dataclass
class Wanted:
    """A submission, and which statuses its record may have; `message` is what its record's ends with."""

    name: str
    source: str
    statuses: set[str]
    message: str = ""


@dataclass
class Seen:
    """What clients and the watcher have seen. Memory is the service's own process, in bytes."""

    accepted: set[str] = field(default_factory=set)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    wrong_token: Counter[int] = field(default_factory=Counter)
    longest_queue: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)
    vanished: int = 0


def submissions(count: int, hostile: float, sources: int) -> list[Wanted]:
    """So many, of which a share is hostile and one in ten is right."""
    found, kinds = [], list(HOSTILE.items())
    every = max(1, round(1 / hostile)) if hostile else count
    for number in range(count):
        message = ""
        if hostile and number % every == 0:
            name, (line, statuses) = kinds[number // every % len(kinds)]
        elif number % 10 == 1:
            name, line, statuses = "right", "return y", {"passed"}
        else:
            message = f"this is number {number}"
            name, line, statuses = "number", f'raise RuntimeError("{message}")', {"runtime_error"}
        source = HEAD.format(zero=number % sources, line=line) + f"\n# {number}\n"
        found.append(Wanted(f"{name}{number}", source, statuses, message))
    return found


def be_a_client(service: Service, share: list[Wanted], seen: Seen, until_s: float) -> None:
    """Submit one after the other as an honest client does, and collect; come again where nobody answers."""
    with service.client() as http:
        for one in share:
            body = {"problem": PROBLEM, "candidate": one.source, "name": one.name, "task_id": one.name}
            body |= {"deadline_s": 80_000}
            while time.monotonic() < until_s:
                try:
                    answer = http.post("/evaluate", json=body)
                    if answer.status_code == 429:
                        seen.refused.append(int(answer.headers["Retry-After"]))
                        time.sleep(1.0)
                        continue
                    view = answer.raise_for_status().json()
                    seen.accepted.add(one.name)
                    while view["status"] in ("pending", "running") and time.monotonic() < until_s:
                        view = http.get(f"/tasks/{one.name}?wait=30").raise_for_status().json()
                    if view["status"] not in ("pending", "running"):
                        seen.answers[one.name] = view
                    break
                except httpx.HTTPError:
                    # While the service is down.
                    time.sleep(0.5)


def vanish(service: Service, seen: Seen, stop: threading.Event) -> None:
    """Clients that send half a request, or a whole one, and hang up."""
    source = HEAD.format(zero=0, line="return y  # of one who has gone away")
    while not stop.wait(5.0):
        body = json.dumps({"problem": PROBLEM, "candidate": source, "name": "vanished", "force": True}).encode()
        head = f"POST /evaluate?wait=30 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        whole = head.encode() + body
        seen.vanished += 1
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", service.port), 5.0) as client:
            client.sendall(whole[: len(whole) // (1 + seen.vanished % 2)])
            stop.wait(0.2)


def watch(service: Service, seen: Seen, stop: threading.Event) -> None:
    """The queue's length and the service's memory; and who comes with a wrong token."""
    begun = time.monotonic()
    while not stop.wait(1.0):
        seen.memory.append((time.monotonic() - begun, service.memory_bytes()))
        with contextlib.suppress(httpx.HTTPError), service.client() as http, service.client("wrong" * 8) as other:
            seen.longest_queue = max(seen.longest_queue, http.get("/queue").json()["tasks"])
            seen.wrong_token[other.post("/evaluate", json={}).status_code] += 1


def measure(
    *, count: int, clients: int, hostile: float, queue: int, sources: int, kill_after: float, limit_s: float
) -> dict[str, Any]:
    """Put the load on a service, kill it once when the share `kill_after` is answered, and tell what was found."""
    wanted = submissions(count, hostile, sources)
    seen, stop = Seen(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="serve-load.") as name:
        service = Service(Path(name), queue=queue)
        service.start()
        begun = time.monotonic()
        until_s = begun + limit_s
        shares = [wanted[number::clients] for number in range(clients)]
        threads = [threading.Thread(target=be_a_client, args=(service, share, seen, until_s)) for share in shares]
        beside = [threading.Thread(target=what, args=(service, seen, stop)) for what in (vanish, watch)]
        for thread in threads + beside:
            thread.start()
        killed_s, accepted = 0.0, 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            if kill_after and not killed_s and len(seen.answers) >= kill_after * count:
                with service.client() as http:
                    accepted = http.get("/queue").json()["tasks"]
                service.end(signal.SIGKILL)
                killed_s = time.monotonic() - begun
                service.start()
        took_s = time.monotonic() - begun
        stop.set()
        for thread in beside:
            thread.join()
        forgotten = _forgotten(service, seen)
        left = _left(service) if len(seen.answers) == count else 0
        disk = sum(path.stat().st_size for path in (Path(name) / "tasks").iterdir())
        service.end(signal.SIGTERM)
        output = (Path(name) / "output").read_text()
    found = faults(wanted, seen.answers) | {"lost": forgotten}
    return found | {
        "submissions": count,
        "answered": len(seen.answers),
        "took_s": round(took_s, 1),
        "killed_after_s": round(killed_s, 1),
        "unfinished_when_killed": accepted,
        "longest_queue": seen.longest_queue,
        "queue_limit": queue,
        "refused_429": len(seen.refused),
        "wrong_token": dict(seen.wrong_token),
        "vanished_clients": seen.vanished,
        "left_in_queue": left,
        "stray_processes": _stray(),
        "memory_mb": _memory(seen.memory, killed_s),
        "disk_mb": round(disk / 1e6, 1),
        "tracebacks": output.count("Traceback"),
        "statuses": dict(Counter(view["record"]["status"] for view in seen.answers.values() if view["record"])),
    }


def faults(wanted: list[Wanted], answers: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Submissions that were answered without a record or with another's, or were judged wrongly."""
    found: dict[str, list[str]] = {"without_record": [], "mixed_up": [], "wrong": []}
    for one in wanted:
        record = answers.get(one.name, {}).get("record")
        if one.name not in answers:
            continue
        if record is None:
            found["without_record"].append(f"{one.name}: {answers[one.name]['error']}")
        elif record["candidate"] != one.name or not str(record["message"]).endswith(one.message):
            found["mixed_up"].append(f"{one.name}: {record['candidate']}, {record['message'][:200]}")
        elif record["status"] not in one.statuses:
            found["wrong"].append(f"{one.name}: {record['status']}, {record['reason']}, {record['message'][:200]}")
    return found


def _forgotten(service: Service, seen: Seen) -> list[str]:
    """Tasks that were accepted, and that the service does not know any more."""
    with service.client() as http:
        return [name for name in sorted(seen.accepted) if http.get(f"/tasks/{name}").status_code == 404]


def _left(service: Service) -> int:
    deadline = time.monotonic() + 60
    with service.client() as http:
        while (left := http.get("/queue").json()["tasks"]) and time.monotonic() < deadline:
            time.sleep(0.5)
    return int(left)


def _stray() -> int:
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += STRAY.encode() in path.read_bytes().split(b"\0")
    return found


def _memory(samples: list[tuple[float, int]], killed_s: float) -> dict[str, float]:
    """The largest, and the mean of the first and the last fifth since the last start (one has a new process)."""
    since = [value / 1e6 for moment, value in samples if value and moment > killed_s + 5.0]
    part = max(1, len(since) // 5)
    first, last = since[:part] or [0.0], since[-part:] or [0.0]
    return {
        "most": round(max([value / 1e6 for _, value in samples] or [0.0]), 1),
        "first_fifth": round(sum(first) / len(first), 1),
        "last_fifth": round(sum(last) / len(last), 1),
    }


def is_good(found: dict[str, Any]) -> bool:
    """Whether all were answered, and nothing was lost, mixed up, wrong, left behind, or let in."""
    faulty = ("lost", "without_record", "mixed_up", "wrong", "left_in_queue", "stray_processes", "tracebacks")
    return (
        not any(found[name] for name in faulty)
        and found["answered"] == found["submissions"]
        and found["longest_queue"] <= found["queue_limit"]
        and set(found["wrong_token"]) <= {401}
    )


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=500)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--hostile", type=float, default=0.1, help="share of hostile candidates (default: 0.1)")
    parser.add_argument("--queue", type=int, default=32)
    parser.add_argument("--sources", type=int, default=20, help="different C++ sources (default: 20)")
    parser.add_argument("--kill-after", type=float, default=0.4, help="share of answers before SIGKILL; 0: none")
    parser.add_argument("--limit", type=float, default=7200.0, help="seconds (default: 7200)")
    given = parser.parse_args()
    found = measure(
        count=given.submissions,
        clients=given.clients,
        hostile=given.hostile,
        queue=given.queue,
        sources=given.sources,
        kill_after=given.kill_after,
        limit_s=given.limit,
    )
    print(json.dumps(found, indent=1))
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
