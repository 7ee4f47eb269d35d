"""Reads and copies a file's bytes so that no file can block the session: only regular files of bounded size. Parses
nothing."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from harness.errors import AssayError

# Weights or a cubin belong in a file beside the candidate.
MOST_BYTES = 4 << 20
SHORT = 1 << 16
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
        return f"a link that leads nowhere ({error.strerror})" if os.path.islink(path) else str(error.strerror)
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "not a regular file")


def load(path: Path) -> bytes:
    """All of the file. Raises LoadFault (`unreadable`, `source_too_large`, `data_too_large`, `doubled_data`)."""
    return _loaded(path)[0]


def digested(path: Path, known: Folders | None = None) -> tuple[bytes, str]:
    """All of the file as `load`, and its digest as `digest`. `known` has what was read of folders for other files."""
    data, beside = _loaded(path, known)
    return data, _digest(data, beside)


def _loaded(path: Path, known: Folders | None = None) -> tuple[bytes, list[str]]:
    """All of the file, and the data beside it that it may read."""
    try:
        known = {} if known is None else known
        named, name = os.path.split(path.resolve() if os.path.islink(path) else path)
        if named not in known:
            known[named] = _listed(Path(named).resolve())
        folder = known[named]
        f"{folder.path}/{name}".encode()
        data = regular(path, MOST_BYTES)
    except UnicodeEncodeError:
        raise LoadFault("unreadable", "the name of the file, or of a folder above it, is not valid UTF-8") from None
    except OSError as error:
        raise LoadFault("unreadable", f"it cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise LoadFault("source_too_large", f"it is larger than {MOST_BYTES >> 20} MiB; put data in a file beside it")
    beside, doubt = _beside(folder, name)
    if doubt:
        raise LoadFault("doubled_data", doubt)
    _check_data(beside)
    return data, beside


def regular(path: Path, most: int, flags: int = 0) -> bytes:
    """The first `most` bytes of a regular file, and one more if it has more; `flags` are more of those for opening it.

    Raises OSError, and LoadFault (`unreadable`) for anything else than a file.
    """
    # Without blocking: it may be a pipe without a writer.
    descriptor = os.open(path, flags | os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise LoadFault("unreadable", "it is not a regular file")
        _refuse_a_secret(path, status)
        # Most files are short, and room for the longest takes longer to get than they take to read.
        parts, room = [], most + 1
        while room and (part := os.read(descriptor, min(room, SHORT))):
            parts.append(part)
            room -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _refuse_a_secret(path: Path | str, status: os.stat_result) -> None:
    """Raise LoadFault for a file that others may not read and that has another name elsewhere: whoever put this name
    here may be somebody else, and what the session reads, a candidate's process gets to read."""
    if status.st_mode & stat.S_IROTH:
        return
    is_link = os.path.islink(path)
    if is_link or status.st_nlink > 1:
        kind = "a link" if is_link else "another name (a hard link)"
        raise LoadFault(
            "unreadable",
            f"it is {kind} of a file that other users may not read: run chmod o+r on that, or put a copy in its place",
        )


def _check_data(beside: list[str]) -> None:
    """Raises LoadFault if there is more data beside a source than the session can name and digest."""
    if len(beside) > MOST_DATA_FILES:
        raise LoadFault("data_too_large", f"more than {MOST_DATA_FILES} files beside it are named after it")
    total = 0
    for place in beside:
        try:
            place.encode()
            status = os.stat(place, follow_symlinks=False)
        except UnicodeEncodeError:
            raise LoadFault("unreadable", "the name of a file beside it is not valid UTF-8") from None
        except OSError:
            continue
        _refuse_a_secret(place, status)
        total += status.st_size
    if total > MOST_DATA_BYTES:
        raise LoadFault("data_too_large", f"the data beside it are larger than {MOST_DATA_BYTES >> 30} GiB")


def digest(path: Path, data: bytes) -> str:
    """The SHA-256 of a file's `data`, and of the files beside it that it may read: other data need another
    evaluation."""
    return _digest(data, own_files(path.resolve())[1:])


def _digest(data: bytes, beside: list[str], copy_to: Path | None = None) -> str:
    """As `digest`. The data `beside` are also written to the folder `copy_to`, if one is given; raises OSError where
    that fails. A file that cannot be read counts only by its name, and is not copied."""
    whole = hashlib.sha256(data)
    for place in beside:
        name = os.path.basename(place)
        whole.update(b"\0" + os.fsencode(name) + b"\0")
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        with open(descriptor, "rb") as file, _new_file(copy_to / name) if copy_to else open(os.devnull, "wb") as copy:
            content = hashlib.sha256()
            while part := file.read(1 << 20):
                content.update(part)
                copy.write(part)
        whole.update(content.digest())
    return whole.hexdigest()


def copy(path: Path, folder: Path, known: Folders | None = None) -> tuple[Path, str]:
    """Copy a file and the data beside it to an empty folder, for all to read: the copy of the file, and the digest of
    what was copied. `known` as for `digested`. Raises LoadFault like `load`, and OSError where the disk is full."""
    data, beside = _loaded(path, known)
    place = folder / path.resolve().name
    with _new_file(place) as file:
        file.write(data)
    return place, _digest(data, beside, folder)


def _new_file(path: Path) -> BinaryIO:
    file = path.open("xb")
    path.chmod(0o644)
    return file


def own_files(source: Path) -> list[str]:
    """A source and the data named after it: `fast.cu` and `fast.weights.bin` beside `fast.py`, no other Python file
    and nothing that could as well be of `fast.weights.py`.

    The folder itself stays closed, because other candidates are in it. `source` is absolute, without links.
    """
    return [str(source), *_beside(_listed(source.parent), source.name)[0]]


class _Folder(NamedTuple):
    """A folder's path, absolute and without links, and the names in it in their order."""

    path: str
    names: list[str]


# By the path that was given.
Folders = dict[str, _Folder]


def _listed(folder: Path) -> _Folder:
    """Without names if it was closed or deleted meanwhile: opening the source will report that."""
    try:
        return _Folder(str(folder), sorted(os.listdir(folder)))
    except OSError:
        return _Folder(str(folder), [])


def _beside(folder: _Folder, source: str) -> tuple[list[str], str]:
    """The data that are named after a source and that no other one could own; and if another could own some, too, a
    sentence about these: whichever of the two got them, the other would lack them."""
    stem = f"{os.path.splitext(source)[0]}."
    first = bisect.bisect_left(folder.names, stem)
    alike = list(itertools.takewhile(lambda name: name.startswith(stem), itertools.islice(folder.names, first, None)))
    data = [name for name in alike if not name.endswith(".py") and _is_file(os.path.join(folder.path, name))]
    rivals = _rivals(folder, source, alike) if data else ()
    own = [os.path.join(folder.path, name) for name in data if not name.startswith(rivals)]
    name = next((name for name in data if name.startswith(rivals)), "")
    if not name:
        return own, ""
    rival = next(rival for rival in rivals if name.startswith(rival))
    both = " or of ".join(sorted((source, f"{rival}py"), key=len))
    mend = "rename one of these two, so that its name does not begin with the other's and a dot"
    return own, f"{name} beside it could be data of {both}; {mend}"


def _rivals(folder: _Folder, source: str, alike: list[str]) -> tuple[str, ...]:
    """How names begin that are named after another source, too, `alike` being those that are named after this one:
    `fast.v2.` beside `fast.py`, and `fast.` beside `fast.v2.py`."""
    longer = [name.removesuffix("py") for name in alike if name.endswith(".py") and name != source]
    stem = os.path.splitext(source)[0]
    dotted = [stem[: place + 1] for place, letter in enumerate(stem) if letter == "."]
    return (*longer, *(start for start in dotted if os.path.lexists(os.path.join(folder.path, f"{start}py"))))


def _is_file(place: str) -> bool:
    """Whether it is a file and no link, which may lead to somebody else's."""
    try:
        return stat.S_ISREG(os.lstat(place).st_mode)
    except OSError:
        return False
