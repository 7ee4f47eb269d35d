"""Files below a folder or matching a pattern, without following links to folders, which may form a circle."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import UsageError

# More than any collection of candidates has: the user has named a whole disk.
MOST_FOLDERS = 20_000


def folders(starts: Iterable[str], passed_over: tuple[str, ...]) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """`starts` and the folders below them, each once and with its entries, without entries whose names begin with one
    of `passed_over`.

    Folders that cannot be opened are skipped. No recursion: folders may be nested deeper than the stack allows. Raises
    UsageError if there are too many.
    """
    waiting, seen = list(starts), set[str]()
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        try:
            with os.scandir(folder) as listing:
                entries = [entry for entry in listing if not entry.name.startswith(passed_over)]
        except OSError:
            continue
        seen.add(folder)
        if len(seen) > MOST_FOLDERS:
            raise UsageError(f"more than {MOST_FOLDERS} folders to search, {folder} among them; name a smaller folder")
        yield folder, entries
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def matches(pattern: Path) -> list[Path]:
    """Files and folders that a pattern with `*`, `?`, `[...]` and `**` matches, sorted; hidden ones if it names them.

    glob.glob follows links to folders below `**`.
    """
    found = [pattern.anchor]
    parts = pattern.parts[1:] if pattern.anchor else pattern.parts
    for part in parts:
        if part == "**":
            found = [folder for folder, _ in folders([place or "." for place in found], (".",))]
        elif glob.has_magic(part):
            found = [entry for place in found for entry in _entries(place, part)]
        else:
            found = [path for place in found if os.path.lexists(path := os.path.join(place, part))]
    return sorted({Path(place) for place in found})


def _entries(folder: str, pattern: str) -> list[str]:
    try:
        names = fnmatch.filter(os.listdir(folder or "."), pattern)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if pattern.startswith(".") or not name.startswith(".")]
