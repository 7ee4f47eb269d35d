"""Our own files in folders that may have come from somebody else: whole or not at all, and never through a link.

A repository may hold a run's folder, with a link in the place of a file that the next run writes.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def draft(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Where to write what `path` is to hold; it takes that place as the block ends, and goes where the block fails: a
    reader, or a kill at any moment, meets the old one or the new one.

    It lies beside `path`, or in `folder` of the same file system. Raises OSError.
    """
    # Not tempfile, whose files only their owner may read.
    place = (folder or path.parent) / f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp"
    place.unlink(missing_ok=True)
    try:
        yield place
        os.replace(place, path)
    finally:
        place.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder of ours, with those above it, if it is missing. Raises OSError, also for a link: who made that may
    be somebody else."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    path.mkdir(parents=True, exist_ok=True)


def kept(path: Path, mode: int = 0o644) -> int:
    """A descriptor, to read and write, of a file of ours that stays as it is; it is made if it is missing.

    Raises OSError, also for a link, a file with a second name, and what is no file: that may be the user's.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file, or has another name, too")
    return descriptor


def fresh(path: Path) -> io.FileIO:
    """A new, empty file at `path` to write to, in place of what had that name, as a link. Raises OSError."""
    path.unlink(missing_ok=True)
    return open(path, "xb", buffering=0)
