"""The cache folder's parts, and whether a folder is one of ours: a config may name any, and old things in it go.

A repository may bring its own config, or a cache folder with links in it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path

from harness import places, wording
from harness.drafts import make_folder
from harness.errors import UsageError

# An empty file in each folder that we have made, or found empty.
MARK = ".cache-of-assay"
BUILDS, HEADERS, PACKS = "builds", "headers", "packs"
# What each part holds. By this a folder is known that an earlier version made, which left no mark.
FORMS = {BUILDS: "[0-9a-f]{2}", HEADERS: "[0-9a-f]{32}", PACKS: r".+-[0-9a-f]{16}(\.lock)?"}
# With its drafts.
CEILINGS = re.compile(r"ceilings\.json|\.ceilings\.json\..+")


def part(name: str, named: str = "") -> Path:
    """The folder `name` of the cache (places.cache), which has our mark from now on if it can be written.

    Raises UsageError for a folder that holds what is not ours, and for a link in the place of the part.
    """
    root = places.cache(named)
    if (root / name).is_symlink():
        raise UsageError(f"{_shown(root / name)} is a link, which the cache follows nowhere; put a folder in its place")
    if not _is_marked(root):
        if not _is_ours(root):
            raise UsageError(
                f"{_shown(root)} is no cache folder of Assay's: it holds other things; name a new or an empty folder "
                "by compile.cache_dir, or by ASSAY_CACHE"
            )
        # Where nothing can be written, nothing is kept.
        with contextlib.suppress(OSError):
            make_folder(root)
            os.close(os.open(root / MARK, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    return root / name


def _is_marked(root: Path) -> bool:
    return (root / MARK).is_file() and not (root / MARK).is_symlink()


def _is_ours(root: Path) -> bool:
    """Whether a folder without a mark is empty, missing, or what an earlier version made."""
    try:
        with os.scandir(root) as entries:
            return all(map(_has_our_form, entries))
    except OSError as error:
        # Nothing is made or deleted there either.
        return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM)


def _has_our_form(entry: os.DirEntry[str]) -> bool:
    if CEILINGS.fullmatch(entry.name):
        return entry.is_file(follow_symlinks=False)
    if entry.name not in FORMS or not entry.is_dir(follow_symlinks=False):
        return False
    return all(re.fullmatch(FORMS[entry.name], name) for name in os.listdir(entry.path))


def _shown(path: Path) -> str:
    return wording.plain(str(path), 300, kept="")
