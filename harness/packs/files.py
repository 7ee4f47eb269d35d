"""The files of a source: found without following links, and read whole up to a limit."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from harness import places, wording
from harness.catalog import search, sources
from harness.catalog.claims import Left, Origin
from harness.errors import AssayError, UsageError

MOST_FILES = 100_000
MOST_TABLE_BYTES = 1 << 28
# The longest first: that of UTF-16 begins that of UTF-32.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Unusable(AssayError):
    """A file, row or text that cannot be imported; `str()` is the reason."""


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a source. `below` is its path below the source, for people; `parts` are its own name, without suffix,
    and those of its folders, innermost first. The last is the source's, or that of the folder that a lone file is in.
    """

    path: Path
    below: str
    parts: list[str]
    # Where it really lies, if it is a link that may be followed.
    real: Path | None = None

    def origin(self, row: str = "", block: str = "") -> Origin:
        return Origin(file=self.below, row=row, block=block)

    def left(self, reason: str, row: str = "", block: str = "") -> Left:
        return Left(origin=self.origin(row, block), reason=wording.plain(reason, 500, kept=""))


def walk(source: Path) -> Iterator[File | Left]:
    """All files of a source, in order; hidden ones, and links that lead out of it, are left. Raises UsageError if
    there is no such source, or if it has too many files."""
    if not os.path.lexists(source):
        raise UsageError(f"{wording.plain(str(source), 300)}: there is no such file or folder")
    if not os.path.isdir(source):
        yield single(source)
        return
    entries = [entry.path for _, found in search.folders([str(source)], ()) for entry in found if not _is_folder(entry)]
    if len(entries) > MOST_FILES:
        raise UsageError(f"{wording.plain(str(source), 300)} has more than {MOST_FILES} files; name a smaller folder")
    for path in sorted(entries):
        file = _followed(_file(Path(path), source), source)
        yield file.left("a hidden file") if any(part.startswith(".") for part in PurePath(file.below).parts) else file


def single(path: Path) -> File:
    """A file that the user names, not one that a folder happens to hold."""
    return msgspec.structs.replace(_file(path, path.parent), real=places.real(path))


def contents(file: File, most: int = sources.MOST_BYTES) -> bytes:
    """All of the file. Raises Unusable for anything but a regular file of at most `most` bytes."""
    try:
        data = sources.regular(file.real or file.path, most, os.O_NOFOLLOW)
    except sources.LoadFault as fault:
        raise Unusable(str(fault)) from fault
    except OSError as error:
        is_link = file.real is None and os.path.islink(file.path)
        what = "a link that leads out of the source" if is_link else error.strerror
        raise Unusable(f"it cannot be read: {what}") from error
    if len(data) > most:
        raise Unusable(f"it is larger than {most >> 20} MiB")
    return data


def decoded(data: bytes) -> str:
    """A text with `\\n` for the end of a line. UTF-8, or what a byte order mark says. Raises Unusable."""
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Unusable(f"byte {error.start + 1} is not {encoding.removesuffix('-sig').upper()}") from error


def encoded(text: str) -> bytes:
    """The text as UTF-8. Raises Unusable for half a surrogate pair, which JSON can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Unusable("it has half a surrogate pair") from error


def _followed(file: File, source: Path) -> File:
    """A link may lead to a file of the user's that is no part of the pack; runs link to each other's kernels, too."""
    try:
        real = places.real(file.path)
    except UsageError:
        # Reading it says that it is a link.
        return file
    inside = os.path.islink(file.path) and real.is_relative_to(places.real(source))
    return msgspec.structs.replace(file, real=real) if inside else file


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _file(path: Path, source: Path) -> File:
    below = path.relative_to(source)
    named = [*reversed(below.parts[:-1]), source.absolute().name]
    return File(path=path, below=wording.plain(str(below), 500, kept=""), parts=[path.stem, *named])
