"""Reads a file's bytes so that no file can block the session: only regular files of bounded size. Parses nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from harness.errors import AssayError

# Weights or a cubin belong in a file beside the candidate.
MOST_BYTES = 4 << 20
# For the data beside one: requests name each file for each process that may read it, and all are digested.
MOST_DATA_FILES, MOST_DATA_BYTES = 128, 4 << 30
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class LoadFault(AssayError):
    """A file that is not a module with the wanted class; `reason` is that of the record, `line` is 0 if not known."""

    def __init__(self, reason: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.line = line


def obstacle(path: Path) -> str:
    """Why the file at `path` cannot be used, as a noun; empty for a regular file and for a link to one."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"a link that leads nowhere ({error.strerror})" if path.is_symlink() else str(error.strerror)
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "not a regular file")


def load(path: Path) -> bytes:
    """All of the file. Raises LoadFault (`unreadable`, `source_too_large`, `data_too_large`)."""
    try:
        str(path.resolve()).encode()
        data = regular(path, MOST_BYTES)
    except UnicodeEncodeError:
        raise LoadFault("unreadable", "the name of the file, or of a folder above it, is not valid UTF-8") from None
    except OSError as error:
        raise LoadFault("unreadable", f"it cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise LoadFault("source_too_large", f"it is larger than {MOST_BYTES >> 20} MiB; put data in a file beside it")
    _check_data(own_files(path.resolve())[1:])
    return data


def regular(path: Path, most: int, flags: int = 0) -> bytes:
    """The first `most` bytes of a regular file, and one more if it has more; `flags` are more of those for opening it.

    Raises OSError, and LoadFault (`unreadable`) for anything else than a file.
    """
    # Without blocking: it may be a pipe without a writer.
    descriptor = os.open(path, flags | os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LoadFault("unreadable", "it is not a regular file")
        return file.read(most + 1)


def _check_data(beside: list[str]) -> None:
    """Raises LoadFault if there is more data beside a source than the session can name and digest."""
    if len(beside) > MOST_DATA_FILES:
        raise LoadFault("data_too_large", f"more than {MOST_DATA_FILES} files beside it are named after it")
    total = 0
    for place in beside:
        try:
            place.encode()
            total += os.stat(place, follow_symlinks=False).st_size
        except UnicodeEncodeError:
            raise LoadFault("unreadable", "the name of a file beside it is not valid UTF-8") from None
        except OSError:
            continue
    if total > MOST_DATA_BYTES:
        raise LoadFault("data_too_large", f"the data beside it are larger than {MOST_DATA_BYTES >> 30} GiB")


def digest(path: Path, data: bytes) -> str:
    """The SHA-256 of a file's `data`, and of the files beside it that it may read: other data need another evaluation.

    A file that cannot be read counts only by its name: the candidate cannot read it, either.
    """
    whole = hashlib.sha256(data)
    for place in own_files(path.resolve())[1:]:
        whole.update(b"\0" + os.fsencode(os.path.basename(place)) + b"\0")
        try:
            with open(place, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        except OSError:
            continue
    return whole.hexdigest()


def own_files(source: Path) -> list[str]:
    """A source and the data named after it: `fast.cu` and `fast.weights.bin` beside `fast.py`, no other Python file.

    The folder itself stays closed, because other candidates are in it. `source` is absolute, without links.
    """
    try:
        entries = [entry for entry in os.scandir(source.parent) if entry.name.startswith(f"{source.stem}.")]
    except OSError:
        # Closed or deleted meanwhile: opening the source will report that.
        return [str(source)]
    # `fast.v2.cu` belongs to `fast.v2.py` if that exists.
    others = tuple(
        entry.name.removesuffix("py") for entry in entries if entry.name.endswith(".py") and entry.name != source.name
    )
    beside = (
        entry.path
        for entry in entries
        if not entry.name.endswith(".py")
        and not entry.name.startswith(others)
        # A link may lead to somebody else's file.
        and entry.is_file(follow_symlinks=False)
    )
    return [str(source), *sorted(beside)]
