"""Built extensions by content, kept between runs and shared between processes and machines. No torch.

An entry is a folder that appears by one rename and never changes: `entry.json` and the libraries it names with their
SHA-256. What is torn, truncated or altered does not verify and counts as absent; there are no locks. Only the session
writes here, after a build process has ended.

Whatever a build process returns is a claim: it could hand over a library made from other sources. So a key holds the
whole candidate file (builds.cache_key), and an entry can only ever be found by the very file whose build made it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.drafts import make_folder

ENTRY = "entry.json"
MAX_LIBRARY_BYTES, MAX_ENTRY_BYTES = 1 << 28, 4 << 20
# Of one candidate's libraries, however large the cache is: what is that large goes not at the cost of many others.
KEPT_BYTES = 64 << 20
# A run killed while it wrote leaves a folder behind; nobody writes for an hour.
STALE_S = 3600.0
# Keys, the folders that they are in, and what nobody has finished: nothing else is looked at, or deleted.
KEY, FIRST, UNFINISHED = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{2}"), ".new-"


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is relative to the entry, with the name that the module is imported by."""

    file: str
    sha256: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What one candidate file was built into: libraries by digest of the call. `warnings` go on the record again."""

    key: str
    libraries: dict[str, Library]
    warnings: list[str]


class Cache:
    """Entries below `root`, at most about `limit_bytes` of them."""

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self._root = root
        self._limit_bytes = limit_bytes

    def fetch(self, key: str, folder: Path) -> tuple[dict[str, str], list[str]] | None:
        """Copy an entry's libraries into `folder`, verified on the way; their paths by digest, and the warnings."""
        place = self._place(key)
        try:
            with _opened(place / ENTRY, MAX_ENTRY_BYTES) as file:
                entry = msgspec.json.decode(file.read(MAX_ENTRY_BYTES), type=Entry)
            if entry.key != key:
                return None
            paths = {}
            for number, (digest, library) in enumerate(entry.libraries.items()):
                target = folder / f"cached_{number}" / Path(library.file).name
                if _copy(place / library.file, target) != library.sha256:
                    return None
                paths[digest] = str(target)
            os.utime(place)
        except (OSError, ValueError):
            # No file, no JSON, no name of a file.
            return None
        return paths, entry.warnings

    def store(self, key: str, libraries: Mapping[str, str], warnings: list[str]) -> None:
        """Keep the libraries (paths by digest) unless there is an entry, or they would take the room of many others; a
        full or read-only disk keeps nothing."""
        place = self._place(key)
        scratch: Path | None = None
        try:
            if sum(os.stat(path).st_size for path in libraries.values()) > min(KEPT_BYTES, self._limit_bytes // 2):
                return
            make_folder(self._root)
            make_folder(place.parent)
            # Beside the entry, so that the rename stays on one file system.
            scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=place.parent))
            kept = {}
            for number, (digest, path) in enumerate(libraries.items()):
                file = f"{number}/{Path(path).name}"
                kept[digest] = Library(file=file, sha256=_copy(Path(path), scratch / file))
            entry = Entry(key=key, libraries=kept, warnings=warnings)
            (scratch / ENTRY).write_bytes(msgspec.json.encode(entry))
            if place.exists() and self.fetch(key, scratch / "verify") is None:
                # Torn or altered: it would stand in the way for ever.
                shutil.rmtree(place, ignore_errors=True)
            shutil.rmtree(scratch / "verify", ignore_errors=True)
            scratch.chmod(0o755)
            os.rename(scratch, place)
        except OSError:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            return
        # Another session deletes, too.
        with contextlib.suppress(OSError):
            self._shrink()

    def _place(self, key: str) -> Path:
        return self._root / key[:2] / key

    def _shrink(self) -> None:
        """Remove what was used least lately until the rest is within the limit, and what killed writers left."""
        sizes, total = [], 0
        for place in self._entries():
            with contextlib.suppress(OSError):
                used = place.stat().st_mtime
                size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
                sizes.append((used, size, place))
                total += size
        for _, size, place in sorted(sizes):
            if total <= self._limit_bytes:
                return
            shutil.rmtree(place, ignore_errors=True)
            total -= size

    def _entries(self) -> Iterator[Path]:
        for first in _folders(self._root):
            for place in _folders(first) if FIRST.fullmatch(first.name) else ():
                if KEY.fullmatch(place.name) and (place / ENTRY).is_file():
                    yield place
                elif place.name.startswith(UNFINISHED) and time.time() - place.stat().st_mtime > STALE_S:
                    shutil.rmtree(place, ignore_errors=True)


def _folders(place: Path) -> list[Path]:
    """Those in a folder, without links: they may lead to other things of the user's."""
    with os.scandir(place) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _copy(source: Path, target: Path) -> str:
    """Copy a regular file and return the SHA-256 of what was written; raises OSError."""
    hasher = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(source, MAX_LIBRARY_BYTES) as reader, target.open("wb") as writer:
        while chunk := reader.read(1 << 20):
            hasher.update(chunk)
            writer.write(chunk)
    return hasher.hexdigest()


def _opened(path: Path, most_bytes: int) -> BinaryIO:
    """A regular file of bounded size, to be read; raises OSError. No links, and nobody waits for a pipe's other end."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        os.close(handle)
        raise OSError(f"{path.name} is no regular file of at most {most_bytes} bytes")
    return open(handle, "rb")
