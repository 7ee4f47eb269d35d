"""From what a caller gives, texts or paths, to a job: the files of texts, and the reading of all files."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness import wording
from harness.catalog import jobs, problems
from harness.catalog.jobs import Job
from harness.config import MOST, Config
from harness.errors import UsageError
from harness.reading.reading import Reader
from harness.records import Record

# Of a text, as it is the name of a file, too.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")

KINDS = {
    **dict.fromkeys(("problem", "candidate"), (str, Path)),
    **dict.fromkeys(("variant", "precision", "name"), (str,)),
    "priority": (int,),
    "deadline_s": (int, float, type(None)),
}

Source = str | Path
"""A `Path` of a file, or its text. A problem's may also be a name or path as a `str`, if that has no line break."""


@dataclass(eq=False)
class Submission:
    """One call of Evaluator.submit, and the future that it returned. Raises UsageError for what is of no use."""

    problem: Source
    candidate: Source
    variant: str
    precision: str
    name: str
    priority: int
    deadline_s: float | None = None
    # Whether its files are being read, or have been.
    is_read: bool = False
    future: Future[Record] = field(default_factory=Future)

    def __post_init__(self) -> None:
        for name, kinds in KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise UsageError(f"{name} cannot be {wording.plain(repr(value), 100)}")
        if self.deadline_s is not None and not 0 < self.deadline_s <= MOST:
            raise UsageError(f"deadline_s must be above 0 and at most {MOST:g}, not {self.deadline_s}")
        if self.name and not NAME.fullmatch(self.name):
            shown = wording.plain(self.name, 100)
            raise UsageError(f"name '{shown}': use letters, digits, '_', '-' and '.', at most 80")


class Planner:
    """Plans jobs by the same rules as a run; the files of texts lie below `folder`. Usable from several threads."""

    def __init__(self, config: Config, surroundings: dict[str, str], folder: Path) -> None:
        self._config = config
        self._surroundings = surroundings
        self._folder = folder
        self._numbers = itertools.count()
        self._own = threading.local()
        self._readers: list[Reader] = []

    def close(self) -> None:
        """End the processes that read files."""
        for reader in self._readers:
            reader.__exit__(None, None, None)

    @contextlib.contextmanager
    def planned(self, one: Submission) -> Iterator[Job]:
        """The job of a submission; the file of a candidate's text goes with the end of the block. Raises UsageError."""
        folder = self._folder / str(next(self._numbers))
        try:
            yield self._job(one, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _job(self, one: Submission, folder: Path) -> Job:
        problem = self._problem_file(one.problem)
        config = msgspec.structs.replace(
            self._config,
            problems=[str(problem)],
            solutions=[str(_candidate_file(one, folder))],
            solves=f"{wording.name(problem.resolve().parent.name)}/{wording.name(problem.stem)}",
            variants=[one.variant],
            precisions=[one.precision],
            include=[],
            exclude=[],
            baselines=[],
        )
        (job,) = jobs.plan(config, self._surroundings, self._reader()).jobs
        return job

    def _problem_file(self, problem: Source) -> Path:
        if not is_text(problem):
            return _file(problem) if isinstance(problem, Path) else problems.by_name(problem)
        # By its content, so that its judge stays open for the next candidate.
        digest = hashlib.sha256(str(problem).encode(errors="surrogatepass")).hexdigest()[:16]
        path = self._folder / "problems" / "source" / f"{digest}.py"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # What lies beside a problem is data of its own.
            draft = path.parents[1] / f"{digest}.{secrets.token_hex(4)}"
            draft.write_text(str(problem), encoding="utf-8", errors="surrogatepass")
            draft.rename(path)
        return path

    def _reader(self) -> Reader:
        """This thread's own."""
        if not hasattr(self._own, "reader"):
            self._own.reader = Reader()
            self._readers.append(self._own.reader)
        reader: Reader = self._own.reader
        return reader


def is_text(problem: Source) -> bool:
    """Whether it is a problem's text, and no name or path."""
    return isinstance(problem, str) and "\n" in problem


def _candidate_file(one: Submission, folder: Path) -> Path:
    # What a model wrote is never looked up as a path.
    if isinstance(one.candidate, Path):
        return _file(one.candidate)
    path = folder / "source" / "text" / f"{one.name or 'candidate'}.py"
    path.parent.mkdir(parents=True)
    path.write_text(one.candidate, encoding="utf-8", errors="surrogatepass")
    return path


def _file(path: Path) -> Path:
    if not os.path.isfile(path):
        raise UsageError(f"{wording.plain(str(path), 300)} is no file")
    return path
