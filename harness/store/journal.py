"""The append-only journal of a run: one record per line, written to disk before the run goes on."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from types import TracebackType

import msgspec

from harness import records
from harness.errors import UsageError
from harness.records import Record

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
# What each line begins with.
RECORD = b'{"key":'


class Journal:
    """`records.jsonl` of one run directory, locked by one session at a time.

    If a crash left an incomplete last line, opening removes it; everything before it is kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, FLAGS | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileExistsError as error:
            raise unwritable(path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))) from error
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UsageError(
                f"another run is writing to {path.parent}; wait until it ends, or choose another folder with --out"
            ) from None
        try:
            data = _own(self._file)
            self.records, intact = parse(data)
            if not _torn(data[intact:]):
                raise OSError(errno.EEXIST, "its last line is no record, nor the beginning of one")
            if intact < len(data):
                os.ftruncate(self._file, intact)
            if intact and data[intact - 1 : intact] != b"\n":
                os.write(self._file, b"\n")
        except BaseException as error:
            os.close(self._file)
            if not isinstance(error, OSError):
                raise
            raise unwritable(path, error) from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def append(self, record: Record) -> Record:
        """Write the record to disk, and return it as it is kept (records.presentable). Raises UsageError if it cannot
        be written."""
        record = records.presentable(record)
        line = records.encode(record) + b"\n"
        try:
            # One write, so that a kill leaves either the whole line or an incomplete last one.
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.records.append(record)
        return record

    def clear(self) -> None:
        """Delete all records (`--fresh`)."""
        os.ftruncate(self._file, 0)
        self.records.clear()

    def bring_back(self, keys: Set[str]) -> bool:
        """Write again the records of these keys behind which there is another one of their cell, as where a file is
        what it was before: the last one of a cell is what reports show. Whether there were any."""
        hidden = keys - {record.key for record in latest(self.records)}
        for record in {record.key: record for record in self.records if record.key in hidden}.values():
            self.append(record)
        return bool(hidden)

    def finished(self, limits: Mapping[str, float]) -> set[str]:
        """Keys of jobs that need no second evaluation under these limits (config.limits).

        Errors of the harness are tried again, and so are jobs that ended by a limit that is larger now.
        """
        return _finished(self.records, limits)


def contents(path: Path) -> bytes:
    """All of a file of a run. Raises OSError, also for a pipe or a device, where reading could block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return _whole(descriptor)
    finally:
        os.close(descriptor)


def _whole(descriptor: int) -> bytes:
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "not a regular file")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _own(descriptor: int) -> bytes:
    """All of a file that is to be written to. Raises OSError for one that has a second name, perhaps as the user's."""
    if os.fstat(descriptor).st_nlink > 1:
        raise OSError(errno.EMLINK, "it has another name, too (a hard link): put a copy in its place")
    return _whole(descriptor)


def _torn(line: bytes) -> bool:
    """Whether a line without its end may be what a crash left of a record: the beginning of one, or zeros."""
    return line.startswith(RECORD) or RECORD.startswith(line) or not line.strip(b"\0")


def unwritable(path: Path, error: OSError) -> UsageError:
    """The error for a file of a run that cannot be opened or written."""
    why = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
    what = f"cannot write {path}: {why}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UsageError(
            f"{what}. Finished results are saved. Free some disk space, then run the same command to resume"
        )
    return UsageError(f"{what}; choose a folder for this run's files with --out")


def _finished(found: Iterable[Record], limits: Mapping[str, float]) -> set[str]:
    return {
        record.key
        for record in found
        if records.is_final(record)
        and not any(_raised(then, limits.get(name, then)) for name, then in record.limit.items())
    }


def _raised(then: float, now: float) -> bool:
    """Whether a limit is larger now, or may be: 0 means that the machine decides."""
    return now > then or now == 0 < then


def parse(data: bytes) -> tuple[list[Record], int]:
    """The records in `data`, and the number of bytes that they take. An incomplete last line is left out, but not one
    that lacks only its newline.

    Raises UsageError if an earlier line is not a record: no crash causes that, so nothing is deleted.
    """
    found: list[Record] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        try:
            found.append(records.decode(data[position:end]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"line {len(found) + 1} of records.jsonl is not a record: {error}") from error
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
