"""A service in a process of its own, as an operator starts it, and clients of it: for benchmarks and tests."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = "toy/scale"


class Service:
    """`run_eval.py serve` over a folder of its own, on a free port of this machine; `more` are options of it.

    Without a `config`, it evaluates on the CPU, quickly rather than precisely.
    """

    def __init__(
        self, folder: Path, *, queue: int, more: Sequence[str] = (), config: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.queue = queue
        self.token = secrets.token_hex(16)
        self._more = more
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = config or {
            "problems": [str(ROOT / "tests/corpus/problems/toy/scale.py")],
            "device": "cpu",
            "timing": {"budget_s": 0.3, "min_pairs": 4, "max_pairs": 4, "burst_ms": 1.0},
            "check": {"stress": False},
            "provenance": {"profile": False},
            "limits": {"load_s": 60.0, "first_call_s": 6.0, "call_s": 6.0, "total_s": 120.0},
        }
        (folder / "service.yaml").write_text(yaml.safe_dump(config))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "run_eval.py", "serve", str(self.folder / "service.yaml")]
        command += [
            "--dir",
            str(self.folder / "tasks"),
            "--port",
            str(self.port),
            "--queue",
            str(self.queue),
            *self._more,
        ]
        environment = os.environ | {"ASSAY_TOKEN": self.token}
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{self.port}/health").raise_for_status()
                return
            time.sleep(0.1)
        raise SystemExit((self.folder / "output").read_text())

    def end(self, number: int) -> int:
        """Send it a signal, and wait for its end; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(120)

    def client(self, token: str = "") -> httpx.Client:
        """A client with the token, or with another one."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=120.0)

    def memory_bytes(self) -> int:
        """What the service's own process has in memory; 0 where it is not there."""
        assert self.process is not None
        try:
            found = re.search(r"^RssAnon:\s*(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text(), re.M)
        except OSError:
            return 0
        return int(found[1]) * 1024 if found else 0
