"""Files that appear whole or not at all: a reader, or a kill at any moment, meets the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def draft(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Where to write what `path` is to hold; it takes that place as the block ends, and goes where the block fails.

    It lies beside `path`, or in `folder` of the same file system. Raises OSError.
    """
    # Not tempfile, whose files only their owner may read.
    place = (folder or path.parent) / f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        yield place
        os.replace(place, path)
    finally:
        place.unlink(missing_ok=True)
