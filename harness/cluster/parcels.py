"""A job with the bytes of its files, so that another machine can carry it out."""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from pathlib import Path

import msgspec

from harness.catalog.jobs import Job
from harness.catalog.sources import own_files

Files = dict[str, bytes]
"""A source and the data beside it, by name; the source is the first."""

PROBLEMS, OTHERS = "problems", "candidates"


def packed(path: Path) -> Files:
    """The file at `path` and the data that it may read. Raises OSError."""
    return {os.path.basename(place): Path(place).read_bytes() for place in own_files(path.resolve())}


class Shelf:
    """Files of jobs from elsewhere, laid out below `folder`, which is made; each once, however many jobs need it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._uses = Counter[Path]()
        self._lock = threading.Lock()

    def laid_out(self, job: Job, problem: Files, candidate: Files) -> Job:
        """The job with files of this machine, which stay until `release`; one without files stays as it is."""
        if not problem or not candidate:
            return job
        return msgspec.structs.replace(
            job,
            problem=msgspec.structs.replace(job.problem, path=self._file(PROBLEMS, job.problem.digest, problem)),
            candidate=msgspec.structs.replace(job.candidate, path=self._file(OTHERS, job.candidate.digest, candidate)),
        )

    def release(self, job: Job) -> None:
        """The job is done; a candidate's files go with its last one. Problems stay, for the next candidate."""
        folder = job.candidate.path.parent
        with self._lock:
            if folder in self._uses:
                self._uses[folder] -= 1
                if not self._uses[folder]:
                    del self._uses[folder]
                    shutil.rmtree(folder, ignore_errors=True)

    def _file(self, kind: str, digest: str, files: Files) -> Path:
        name = next(iter(files))
        # The digest is the sender's; that it is that of these files is tested when they are copied for the run.
        folder = self._folder / kind / f"{digest[:32]}-{name.removesuffix('.py')}"
        with self._lock:
            if kind == OTHERS:
                self._uses[folder] += 1
            if not folder.exists():
                folder.mkdir(parents=True)
                for each, content in files.items():
                    (folder / each).write_bytes(content)
        return folder / name
