"""A job with the bytes of its files, so that another machine can carry it out."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import Counter
from pathlib import Path

import msgspec

from harness.catalog.jobs import Job
from harness.catalog.sources import own_files
from harness.records import Outcome, Status

Files = dict[str, bytes]
"""A source and the data beside it, by name; the source is the first."""

PROBLEMS, OTHERS = "problems", "candidates"


def packed(path: Path) -> Files:
    """The file at `path` and the data that it may read. Raises OSError."""
    return {os.path.basename(place): Path(place).read_bytes() for place in own_files(path.resolve())}


def not_sent(job: Job, error: OSError) -> Job:
    """The job with a fault in place of files that could not be read, or laid out on the other machine."""
    message = f"{job.candidate.path.name}, or its problem, could not be copied to another machine: {error.strerror}"
    fault = Outcome(status=Status.HARNESS_ERROR, reason="not_copied", message=message)
    return msgspec.structs.replace(job, candidate=msgspec.structs.replace(job.candidate, fault=fault))


class Shelf:
    """Files of jobs from elsewhere, laid out below `folder`, which is made; each once, however many jobs need it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._uses = Counter[Path]()
        self._lock = threading.Lock()

    def laid_out(self, job: Job, problem: Files, candidate: Files) -> Job:
        """The job with files of this machine, which stay until `release`; one without files stays as it is.

        Where there is no room for them, it has a fault.
        """
        if not problem or not candidate:
            return job
        try:
            mine = msgspec.structs.replace(job.problem, path=self._file(PROBLEMS, job.problem.digest, problem))
            own = msgspec.structs.replace(job.candidate, path=self._file(OTHERS, job.candidate.digest, candidate))
        except OSError as error:
            return not_sent(job, error)
        return msgspec.structs.replace(job, problem=mine, candidate=own)

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
        # Their names may be as long as a name can be, and so the folder's cannot hold one.
        names = hashlib.sha256("/".join(files).encode(errors="surrogateescape")).hexdigest()
        folder = self._folder / kind / f"{digest[:32]}-{names[:16]}"
        with self._lock:
            if not folder.exists():
                self._fill(folder, files)
            if kind == OTHERS:
                self._uses[folder] += 1
        return folder / name

    def _fill(self, folder: Path, files: Files) -> None:
        """Make the folder with all of its files, or not at all. Raises OSError."""
        draft = folder.with_suffix(".draft")
        try:
            draft.mkdir(parents=True)
            for name, content in files.items():
                (draft / name).write_bytes(content)
            draft.rename(folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
