"""What the benchmarks of the clock share: problems made up as files, run through the real harness. No torch here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console

from harness import session
from harness.catalog.jobs import Job
from harness.config import CheckConfig, Config, TimingConfig
from harness.environment import Device
from harness.execution.executor import Executor, ReportPhase
from harness.execution.local import LocalExecutor
from harness.records import Record

SET = "made_up"
"""The folder that the problems lie in: their ids are `made_up/NAME`."""

OnPhase = Callable[[str, str], None]
"""Called with a job's problem id and the phase that its evaluation enters."""


@dataclass(frozen=True)
class Problem:
    """A problem's source, and the sources of its candidates by name."""

    name: str
    source: str
    candidates: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{SET}/{self.name}"


def source(forward: str, inputs: Sequence[str], *, entry: str = "Model", precision: str = "float32") -> str:
    """A problem's file (or, with `entry="ModelNew"`, a candidate's): `forward` is the method's body, of a, b, c."""
    names = "abc"[: len(inputs)]
    body = forward.strip().replace("\n", "\n        ")
    return f'''"""Made up by a benchmark."""

import torch
from torch import nn

PRECISION = "{precision}"


class {entry}(nn.Module):
    def forward(self, {", ".join(names)}):
        {body}


def get_inputs():
    return [{", ".join(f"torch.randn({shape})" for shape in inputs)}]


def get_init_inputs():
    return []
'''


def write(problems: Sequence[Problem], root: Path) -> None:
    """Lay out `root`/problems and `root`/solutions as the harness finds them."""
    for problem in problems:
        (root / "problems" / SET).mkdir(parents=True, exist_ok=True)
        problem_path(root, problem).write_text(problem.source)
        folder = root / "solutions" / SET / problem.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in problem.candidates.items():
            (folder / f"{name}.py").write_text(text)


def problem_path(root: Path, problem: Problem) -> Path:
    """Where `write` puts a problem."""
    return root / "problems" / SET / f"{problem.name}.py"


def run(
    root: Path,
    out: Path,
    device: str,
    timing: TimingConfig,
    *,
    deadline: float,
    lanes: int = 1,
    on_phase: OnPhase | None = None,
) -> list[Record]:
    """The harness's records of everything under `root`, into the run directory `out`; progress goes to stderr.

    No candidate is begun after `deadline` (on the monotonic clock); what is left then has no record. Inputs made to be
    hard are left out: they are not timed.
    """
    config = Config(
        problems=[str(root / "problems")],
        solutions=[str(root / "solutions")],
        device=device,
        lanes=lanes,
        timing=timing,
        check=CheckConfig(stress=False),
    )

    def make_executor(devices: list[Device], config: Config, logs: Path, seed: int) -> Executor:
        return Bounded(LocalExecutor(devices, config, logs, seed), deadline, on_phase)

    console = Console(stderr=True)
    command = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return session.run(config, out, console, command=command, fresh=True, make_executor=make_executor)


class Bounded:
    """An executor that ends at a deadline, whatever is left to do, and tells of phases as they begin."""

    def __init__(self, inner: Executor, deadline: float, on_phase: OnPhase | None) -> None:
        self._inner = inner
        self._deadline = deadline
        self._on_phase = on_phase

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        problems = {job.title: job.problem.id for job in jobs}

        def report(slot: str, title: str, phase: str) -> None:
            report_phase(slot, title, phase)
            if self._on_phase is not None:
                self._on_phase(problems[title], phase)

        with closing(self._inner.run(jobs, report)) as records:  # type: ignore[type-var]
            for record in records:
                yield record
                if time.monotonic() > self._deadline:
                    return


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell: the first to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    for row in (titles, *rows):
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print(row[0].ljust(widths[0]), *cells, sep="  ")


def print_failures(records: Sequence[Record]) -> None:
    """A line for each record without a time, and for each warning that a run of honest kernels should not have."""
    for record in records:
        if record.timing is None:
            print(f"{record.problem} {record.candidate}: {record.status} ({record.reason}): {record.message}")
    warned: dict[tuple[str, str], int] = {}
    for record in records:
        for warning in record.warnings:
            key = (record.problem, warning.partition(":")[0])
            warned[key] = warned.get(key, 0) + 1
    for (problem, word), count in warned.items():
        print(f"{problem}: {count} of the records warn: {word}")
