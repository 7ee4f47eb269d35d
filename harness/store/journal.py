"""The append-only journal of a run: one record a line, synced before the run goes on."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from harness import records
from harness.errors import UsageError
from harness.records import Record, Status


class Journal:
    """`records.jsonl` of one run directory, held by one session at a time.

    A line that a crash tore is cut off on opening; everything before it is kept as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UsageError(f"another run is writing to {path.parent}; wait for it or give another --out") from None
        try:
            data = contents(path)
            self.records, intact = parse(data)
            os.ftruncate(self._file, intact)
            if intact and data[intact - 1 : intact] != b"\n":
                os.write(self._file, b"\n")
        except OSError as error:
            os.close(self._file)
            raise unwritable(path, error) from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def append(self, record: Record) -> Record:
        """The record as it is kept (records.presentable), on disk when this returns. Raises UsageError where it
        cannot be written."""
        record = records.presentable(record)
        line = records.encode(record) + b"\n"
        try:
            # One write, so that a kill leaves either the whole line or a torn tail, never an interleaving.
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.records.append(record)
        return record

    def clear(self) -> None:
        """Forget everything (`--fresh`)."""
        os.ftruncate(self._file, 0)
        self.records.clear()

    def finished(self, limits: Mapping[str, float]) -> set[str]:
        """Keys that need no second evaluation under these limits (config.limits).

        The harness's own errors are worth another try, and so is what ended by a limit that is larger now.
        """
        return _finished(self.records, limits)


def finished_in(path: Path, limits: Mapping[str, float]) -> set[str]:
    """What `Journal.finished` would say of this file, which may be missing, without making or taking it."""
    try:
        return _finished(parse(contents(path))[0], limits)
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise unwritable(path, error) from error


def contents(path: Path) -> bytes:
    """All of a file of a run. Raises OSError, also where it is a pipe, which nobody may ever write to, or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> UsageError:
    """What to say of a file of a run that cannot be opened or written."""
    what = f"cannot write {path}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UsageError(
            f"{what}. Finished results are saved. Free some disk space, then run the same command to resume"
        )
    return UsageError(f"{what}; --out names a folder for this run's files")


def _finished(found: Iterable[Record], limits: Mapping[str, float]) -> set[str]:
    return {
        record.key
        for record in found
        if record.status is not Status.HARNESS_ERROR
        and not any(_raised(then, limits.get(name, then)) for name, then in record.limit.items())
    }


def _raised(then: float, now: float) -> bool:
    """Whether a limit is larger now, or may be: 0 leaves it to the machine."""
    return now > then or now == 0 < then


def parse(data: bytes) -> tuple[list[Record], int]:
    """The records in `data` and the number of bytes they take up; a torn last line is left out, but not one that lacks
    nothing but its end.

    Raises UsageError where a line in the middle is no record: that is no crash's doing, and nothing is thrown away.
    """
    found: list[Record] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        try:
            found.append(records.decode(data[position:end]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"line {len(found) + 1} of records.jsonl is no record: {error}") from error
        position = end + 1
    try:
        found.append(records.decode(data[position:]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return found, position
    return found, len(data)


def latest(found: Iterable[Record]) -> list[Record]:
    """The last record of each (problem, variant, precision, candidate, device): what reports show."""
    newest: dict[tuple[str, ...], Record] = {}
    for record in found:
        newest[(record.problem, record.variant, record.precision, record.candidate, record.device)] = record
    return list(newest.values())
