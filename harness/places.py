"""Paths: the package, the checkout that may contain it, the files that it brings along, and the cache folder."""

from __future__ import annotations

import glob
import itertools
import os
import re
from pathlib import Path

from harness import wording
from harness.errors import UsageError

PACKAGE = Path(__file__).resolve().parent
# A wheel has these folders inside the package, a checkout beside it.
BROUGHT = ("configs", "problems", "solutions")
INSIDE = PACKAGE / "library"
# The project's own folder; None if the package is installed among others.
CHECKOUT = None if INSIDE.is_dir() else PACKAGE.parent
LIBRARY = CHECKOUT or INSIDE


def found(name: str | Path) -> Path:
    """The path or glob `name`; if the current folder lacks such configs/, problems/ or solutions/, that of the library.

    A name that exists in neither is returned unchanged.
    """
    path = Path(name)
    if path.is_absolute() or path.parts[:1] not in {(folder,) for folder in BROUGHT} or _is_there(path):
        return path
    return LIBRARY / path if _is_there(LIBRARY / path) else path


def real(path: Path) -> Path:
    """Where a path leads that comes from outside, links followed; as far as it leads anywhere.

    Raises UsageError where that may not be known. Path.resolve raises three kinds of errors there.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{wording.plain(str(path), 300, kept='')} leads nowhere: {why}") from error


def _is_there(path: Path) -> bool:
    """Whether a path exists; for a pattern, whether the folders before its first wildcard exist."""
    named = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    return os.path.lexists(path) or (glob.has_magic(str(path)) and os.path.isdir(Path(*named)))


def python_path() -> str:
    """PYTHONPATH for processes of the harness, so that they find this same package.

    An installed package needs no entry; one before the standard library would let its neighbours hide parts of that.
    """
    return os.pathsep.join(part for part in (str(CHECKOUT or ""), os.environ.get("PYTHONPATH", "")) if part)


def cache(named: str = "") -> Path:
    """The folder for everything kept between runs: `named`, $ASSAY_CACHE, $XDG_CACHE_HOME/assay or ~/.cache/assay.

    XDG_CACHE_HOME counts only if it is absolute, as XDG requires. Raises UsageError if there is no home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else "~/.cache"
    try:
        return Path(named or os.environ.get("ASSAY_CACHE") or f"{base}/assay").expanduser().resolve()
    except RuntimeError as error:
        raise UsageError("there is no home folder for the cache; set ASSAY_CACHE to a folder") from error


def portable(text: str) -> str:
    """`text` without the paths of the package and of the user's home; longer names that begin like them are kept."""
    for place, instead in ((f"{PACKAGE.parent}/", ""), (os.path.expanduser("~"), "~")):
        # In a container the home folder may be "/", with which every path begins.
        if os.path.isabs(place) and place.strip("/"):
            text = re.sub(rf"(?<![\w.~/-]){re.escape(place)}(?![\w-])" if instead else re.escape(place), instead, text)
    return text
