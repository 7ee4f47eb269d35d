"""One step of reinforcement learning: problems x samples x turns evaluations, each turn after the answer to the last.

    python benchmarks/training_step.py                                           16 x 16 x 3 = 768, on a GPU
    python benchmarks/training_step.py --problems 2 --samples 2 --turns 2        few enough for a CPU
    python benchmarks/training_step.py --out rows.json                           keeps each evaluation

Candidates are made of those of this repository (CUDA on a GPU, C++ elsewhere), at `small`: a third do not compile, a
third give wrong numbers, the rest is right. Each is another file, so each is compiled; the cache is empty at first. The
answer to a turn sends the next at once. Prints candidates a minute, how much of the time the device was in timed
bursts, and how long an answer took beyond its build and evaluation. The last lines are a simulation from what was
measured: the same step with more devices and hosts, where whoever is free takes the next, and each device stays with
the problem that it has open.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import config as configs
from harness import environment
from harness.api import Evaluator, Record
from harness.execution.build_slots import how_many
from harness.execution.schedule import WORTH_SHARING

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs/quickstart.yaml"
# Into the C++ or CUDA of a candidate: what makes it another file, or one of the usual mistakes.
OTHER = "// {name}"
MISTAKES = (
    "static const int unused_{number} = nothing_declares_this;",
    "static const int unused_{number} = 1",
    "static const Tensr unused_{number};",
)
# After a candidate: numbers that are one per cent off.
WRONG = """

class ModelNew(ModelNew):
    def forward(self, *inputs):
        found = super().forward(*inputs)
        first, *others = found if isinstance(found, tuple) else (found,)
        first = first * 1.01 if first.is_floating_point() else first + 1
        return (first, *others) if isinstance(found, tuple) else first
"""
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
KINDS = ("broken", "wrong", "right")
# Devices and hosts of the simulation.
FLEETS = ((1, 1), (8, 1), (64, 8))


@dataclass
class Row:
    """One evaluation; seconds. `opened_s` is what opening the problem took, where it was opened for this one."""

    problem: str
    kind: str
    status: str
    answer_s: float
    build_s: float
    device_s: float
    opened_s: float
    bursts_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=16, metavar="N")
    parser.add_argument("--samples", type=int, default=16, metavar="N")
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="each evaluation, as JSON")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    options = parser.parse_args()
    kind = environment.choose_devices(options.device)[0].kind
    problems = at_hand(kind, options.problems)
    with tempfile.TemporaryDirectory() as scratch:
        config = configs.load(CONFIG, [f"compile.cache_dir={scratch}", *options.set])
        config = msgspec.structs.replace(config, device=options.device)
        began = time.monotonic()
        with Evaluator(config) as evaluator:
            rows = Step(evaluator, problems, options.samples, options.turns).carried_out()
        wall_s = time.monotonic() - began
    statuses = Counter(f"{row.kind} {row.status}" for row in rows)
    print(", ".join(f"{count} {what}" for what, count in sorted(statuses.items())))
    waits = [max(row.answer_s - row.build_s - row.device_s - row.opened_s, 0.0) for row in rows]
    found = {
        "evaluations": len(rows),
        "wall_s": wall_s,
        "candidates_per_minute": 60 * len(rows) / wall_s,
        "in_bursts": sum(row.bursts_s for row in rows) / wall_s,
        "median_wait_s": statistics.median(waits),
        "build_slots": how_many(config),
    }
    simulated = {
        f"{devices} on {hosts}": simulation(rows, options.turns, devices, hosts * how_many(config))
        for devices, hosts in FLEETS
    }
    if options.out:
        options.out.write_text(json.dumps({"found": found, "simulated_s": simulated, "rows": list(map(asdict, rows))}))
    for fleet, seconds in simulated.items():
        print(f"simulated, devices and hosts {fleet}: {seconds:.0f} s")
    print(" ".join(f"{name}={value:.3g}" for name, value in found.items()))


def at_hand(kind: str, count: int) -> dict[str, list[str]]:
    """The texts of this repository's candidates for so many problems that have some for this kind of device."""
    wanted = "cuda_sources" if kind == "cuda" else "cpp_"
    found: dict[str, list[str]] = {}
    for folder in sorted((ROOT / "solutions").glob("*/*")):
        texts = [
            path.read_text() for path in sorted(folder.glob("*.py")) if kind == "cuda" or path.stem.startswith(wanted)
        ]
        texts = [text for text in texts if "load_inline" in text and INCLUDE.search(text)]
        if kind == "cuda":
            texts = [text for text in texts if "__global__" in text]
        if texts:
            found[f"{folder.parent.name}/{folder.name}"] = texts
    chosen = random.Random(0).sample(sorted(found), min(count, len(found)))
    return {problem: found[problem] for problem in chosen}


def made(text: str, kind: str, number: int) -> str:
    """A candidate of this kind that no other number gives."""
    line = (MISTAKES[number % len(MISTAKES)] if kind == "broken" else OTHER).format(
        number=number, name=f"{kind} {number}"
    )
    last = list(INCLUDE.finditer(text))[-1]
    return text[: last.end()] + line + "\n" + text[last.end() :] + (WRONG if kind == "wrong" else "")


class Step:
    """All samples of all problems, each with its turns one after the other."""

    def __init__(self, evaluator: Evaluator, problems: dict[str, list[str]], samples: int, turns: int) -> None:
        self._evaluator = evaluator
        self._problems = problems
        self._samples = samples
        self._turns = turns
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._done = threading.Event()
        self._total = len(problems) * samples * turns

    def carried_out(self) -> list[Row]:
        for sample in range(self._samples):
            for problem in self._problems:
                self._send(problem, sample, 1)
        self._done.wait()
        return self._rows

    def _send(self, problem: str, sample: int, turn: int) -> None:
        with self._lock:
            number = next(self._numbers)
        # Every trajectory sees each kind, in another order.
        kind = KINDS[(sample + turn) % len(KINDS)]
        texts = self._problems[problem]
        text = made(texts[sample % len(texts)], kind, number)
        sent = time.monotonic()
        future = self._evaluator.submit(problem, text, variant="small", name=f"sample_{sample}")
        future.add_done_callback(lambda done: self._answered(done, problem, sample, turn, kind, sent))

    def _answered(self, done: Future[Record], problem: str, sample: int, turn: int, kind: str, sent: float) -> None:
        one = row(done.result(), kind, time.monotonic() - sent)
        with self._lock:
            self._rows.append(one)
            last = len(self._rows) == self._total
        if turn < self._turns:
            self._send(problem, sample, turn + 1)
        if last:
            self._done.set()


def row(record: Record, kind: str, answer_s: float) -> Row:
    opened_s = sum(seconds for phase, seconds in record.phases_s.items() if phase.startswith("open: "))
    timing = record.timing
    bursts_us = 0.0
    if timing:
        bursts_us = sum(timing.candidate_us) * timing.calls_per_burst
        bursts_us += sum(timing.baseline_us) * timing.baseline_calls_per_burst
        bursts_us += sum(timing.candidate_single_us) + sum(timing.baseline_single_us)
    return Row(
        problem=record.problem,
        kind=kind,
        status=str(record.status),
        answer_s=answer_s,
        build_s=record.compile_s or 0.0,
        device_s=record.phases_s.get("judge", 0.0),
        opened_s=opened_s,
        bursts_s=bursts_us / 1e6,
    )


def simulation(rows: list[Row], turns: int, devices: int, builders: int) -> float:
    """How long the step takes this fleet, in seconds; turns are dealt out to as many samples of their problem."""
    opening, samples = {}, []
    for problem in {row.problem for row in rows}:
        own = [row for row in rows if row.problem == problem]
        opening[problem] = statistics.mean([row.opened_s for row in own if row.opened_s] or [0.0])
        samples += [own[start : start + turns] for start in range(0, len(own), turns)]
    to_build, ready = deque(samples), list[list[Row]]()
    # Of each device, the problem that it has open.
    opened = [""] * devices
    free = set(range(devices))
    # When it ends, and for which device; -1 for a builder.
    under_way: list[tuple[float, int, int, list[Row]]] = []
    now, numbers = 0.0, itertools.count()
    while True:
        while to_build and builders:
            sample = to_build.popleft()
            builders -= 1
            heapq.heappush(under_way, (now + sample[-1].build_s, next(numbers), -1, sample))
        while taken := next_taken(ready, free, opened):
            device, sample = taken
            ready.remove(sample)
            free.remove(device)
            turn = sample[-1]
            takes_s = turn.device_s + opening[turn.problem] * (turn.problem != opened[device])
            opened[device] = turn.problem
            heapq.heappush(under_way, (now + takes_s, next(numbers), device, sample))
        if not under_way:
            return now
        now, _, device, sample = heapq.heappop(under_way)
        if device < 0:
            builders += 1
            ready.append(sample)
        else:
            free.add(device)
            sample.pop()
            if sample:
                to_build.append(sample)


def next_taken(ready: list[list[Row]], free: set[int], opened: list[str]) -> tuple[int, list[Row]] | None:
    """A free device and what it evaluates next, as execution/schedule.py chooses; None if there is nothing for any."""
    waiting = Counter(sample[-1].problem for sample in ready)
    for device in sorted(free):
        for sample in ready:
            if sample[-1].problem == opened[device]:
                return device, sample
    for sample in ready:
        problem = sample[-1].problem
        if free and (problem not in opened or waiting[problem] >= WORTH_SHARING):
            return min(free), sample
    return None


if __name__ == "__main__":
    main()
