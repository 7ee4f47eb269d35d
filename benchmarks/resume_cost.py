"""What it costs to resume a large run of which everything is finished, and to report it.

    python benchmarks/resume_cost.py                  5,000 jobs: 50 problems with 100 candidates each
    python benchmarks/resume_cost.py --problems 10 --candidates 20

One candidate is really evaluated. Its record, with all its samples, is that of every job; so no other is evaluated, and
the files are read, planned and reported as in any run. Prints wall and processor seconds and the largest process's
memory for each command.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from rich.console import Console

from benchmarks import _made_up
from harness import api, session
from harness.catalog.jobs import Job
from harness.config import Config, TimingConfig
from harness.execution.executor import ReportPhase
from harness.records import Record

ROOT = Path(__file__).resolve().parents[1]
TIMING = TimingConfig(budget_s=2.0)


class Finished:
    """An executor that has a record for every job already."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __call__(self, *_: object) -> Finished:
        return self

    def run(self, jobs: Iterable[Job], report_phase: ReportPhase) -> Iterator[Record]:
        for job in jobs:
            yield msgspec.structs.replace(
                self._record,
                key=job.key,
                problem=job.problem.id,
                variant=job.variant,
                precision=job.precision,
                candidate=job.candidate.name,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--candidates", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resume-cost-") as folder:
        root = Path(folder)
        out = root / "run"
        lay_out(root, arguments.problems, arguments.candidates)
        config = Config(
            problems=[str(root / "problems")], solutions=[str(root / "solutions")], device="cpu", timing=TIMING
        )
        (root / "config.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(config)))
        problem, candidate = (next((root / part).rglob("*.py")) for part in ("problems", "solutions"))
        record = api.evaluate(problem, candidate, config=config)
        with open(os.devnull, "w") as nowhere:
            session.run(config, out, Console(file=nowhere), command=["benchmark"], make_executor=Finished(record))
        size = (out / "records.jsonl").stat().st_size
        print(f"jobs={arguments.problems * arguments.candidates} records_mb={size / 1e6:.1f}")
        resume = ["run", str(root / "config.yaml"), "--out", str(out)]
        for name, words in {"resume": resume, "report": ["report", str(out)]}.items():
            print(f"{name}: {cost(words)}")


def lay_out(root: Path, problems: int, candidates: int) -> None:
    """Problems and candidates, no two of which are the same text."""
    text = _made_up.source("return a * 2", ["64, 64"], entry="ModelNew")
    reference = _made_up.source("return a * 2", ["64, 64"])
    named = {f"c{number:04d}": f"{text}# {number}\n" for number in range(candidates)}
    _made_up.write([_made_up.Problem(f"p{one:03d}", f"{reference}# {one}\n", named) for one in range(problems)], root)


def cost(words: list[str]) -> str:
    """What one command takes, with the processes that it starts."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen([sys.executable, str(ROOT / "run_eval.py"), *words], stdout=subprocess.DEVNULL)
    most_kb = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError, ValueError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            most_kb = max(most_kb, int(status.partition("VmHWM:")[2].split()[0]))
        time.sleep(0.02)
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"exit={process.returncode} wall_s={wall_s:.2f} cpu_s={cpu_s:.2f} memory_mb={most_kb / 1e3:.0f}"


if __name__ == "__main__":
    main()
