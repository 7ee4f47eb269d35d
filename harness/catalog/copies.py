"""The files of a run, each copied once: what is built, run and timed is what was digested, whatever becomes of the
user's files meanwhile, and whoever may read those."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.catalog import sources
from harness.catalog.jobs import Job
from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate
from harness.records import Outcome, Status


class Copies:
    """Copies of problems and candidates, with the data beside them, below `folder`, which is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        # A sandboxed process is another user and must be able to pass through.
        folder.chmod(0o711)
        self._folder = folder
        self._known: dict[tuple[Path, str], Path] = {}
        # The other way round.
        self._names: dict[Path, tuple[Path, str]] = {}
        # Where the files of the copies' folders, which have numbers for names, come from.
        self._origins: dict[int, bytes] = {}
        self._numbers = itertools.count()
        self._uses = Counter[Path]()
        self._lock = threading.RLock()
        self._place = re.compile(re.escape(os.fsencode(folder)) + rb"/(0|[1-9]\d{0,8})(?=\W|$)")

    def jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """Jobs with copies in place of the user's files, which stay until `release`. Each folder is read once."""
        folders: sources.Folders = {}
        return [self.job(job, folders) for job in jobs]

    def job(self, job: Job, folders: sources.Folders | None = None) -> Job:
        """One job. `folders` has what was read of folders for others."""
        if job.problem.fault or job.candidate.fault:
            return job
        with self._lock:
            problem, candidate = self.problem(job.problem, folders), self.candidate(job.candidate, folders)
            self._uses[candidate.path] += 1
        if isinstance(problem, Outcome):
            return msgspec.structs.replace(job, candidate=msgspec.structs.replace(candidate, fault=problem))
        return msgspec.structs.replace(job, problem=problem, candidate=candidate)

    def candidate(self, candidate: Candidate, folders: sources.Folders | None = None) -> Candidate:
        """The candidate with a copy as its file, or with a fault that says why there is none."""
        if candidate.fault:
            return candidate
        copy = self._copied(candidate.path, candidate.digest, folders)
        if isinstance(copy, Outcome):
            return msgspec.structs.replace(candidate, fault=copy)
        return msgspec.structs.replace(candidate, path=copy)

    def problem(self, problem: Problem, folders: sources.Folders | None = None) -> Problem | Outcome:
        """The problem with a copy as its file, or why there is none."""
        copy = self._copied(problem.path, problem.digest, folders)
        return copy if isinstance(copy, Outcome) else msgspec.structs.replace(problem, path=copy)

    def release(self, job: Job) -> None:
        """Remove the copy of a candidate with the last of the jobs that `job` has given and that were not released.

        Copies of problems stay: what is beside them may be large.
        """
        place = job.candidate.path
        with self._lock:
            self._uses.subtract([place] if place in self._uses else [])
            if self._uses.get(place) != 0:
                return
            del self._uses[place]
            name = None if job.candidate.baseline else self._names.pop(place, None)
            if name is not None:
                del self._known[name]
        if name is not None:
            shutil.rmtree(place.parent, ignore_errors=True)
            self._origins.pop(int(place.parent.name), None)

    def shown(self, text: str) -> str:
        """`text` with the user's own folders in place of the copies'."""
        changed = self.shown_bytes(text.encode(errors="surrogatepass"))
        return changed.decode(errors="surrogatepass")

    def shown_bytes(self, text: bytes) -> bytes:
        """As `shown`."""
        return self._place.sub(self._origin, text)

    def _origin(self, found: re.Match[bytes]) -> bytes:
        return self._origins.get(int(found[1]), found[0])

    def _copied(self, path: Path, digest: str, folders: sources.Folders | None) -> Path | Outcome:
        # The same file may have been edited between two jobs that come one after the other.
        with self._lock:
            copy = self._known.get((path, digest)) or self._copy(path, digest, folders)
            if isinstance(copy, Path):
                self._known[path, digest] = copy
                self._names[copy] = path, digest
            return copy

    def _copy(self, path: Path, digest: str, folders: sources.Folders | None) -> Path | Outcome:
        number = next(self._numbers)
        folder = self._folder / str(number)
        self._origins[number] = str(path.resolve().parent).encode(errors="replace")
        try:
            folder.mkdir()
            folder.chmod(0o755)
            copy, found = sources.copy(path, folder, folders)
            if found == digest:
                return copy
            fault = _changed(f"{path.name}, or data beside it, is another one by now")
        except sources.LoadFault as error:
            fault = _changed(f"{path.name}: {error}")
        except OSError as error:
            message = f"{path.name} and the data beside it could not be copied to {self._folder}: {error.strerror}"
            fault = Outcome(status=Status.HARNESS_ERROR, reason="not_copied", message=message)
        # What there is of it would leave no room for others.
        shutil.rmtree(folder, ignore_errors=True)
        return fault


def _changed(what: str) -> Outcome:
    message = f"{what}; it was changed while the run began; the next run evaluates it as it then is"
    return Outcome(status=Status.HARNESS_ERROR, reason="source_changed", message=message)
