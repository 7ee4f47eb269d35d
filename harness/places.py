"""Where things lie: the package, the checkout it may be part of, what it brings along, and the one cache folder."""

from __future__ import annotations

import glob
import itertools
import os
import re
from pathlib import Path

from harness.errors import UsageError

PACKAGE = Path(__file__).resolve().parent
# A wheel has these folders inside the package, a checkout beside it.
BROUGHT = ("configs", "problems", "solutions")
INSIDE = PACKAGE / "library"
# The folder that is this project's own; None where the package lies among others.
CHECKOUT = None if INSIDE.is_dir() else PACKAGE.parent
LIBRARY = CHECKOUT or INSIDE


def found(name: str | Path) -> Path:
    """The path or glob `name`; of the library where the current folder has no such configs/, problems/ or solutions/.

    A name that is nowhere stays as it is.
    """
    path = Path(name)
    if path.is_absolute() or path.parts[:1] not in {(folder,) for folder in BROUGHT} or _is_there(path):
        return path
    return LIBRARY / path if _is_there(LIBRARY / path) else path


def _is_there(path: Path) -> bool:
    """Of a pattern, whether the folders before its first wildcard are there."""
    named = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    return os.path.lexists(path) or (glob.has_magic(str(path)) and Path(*named).is_dir())


def python_path() -> str:
    """PYTHONPATH for processes of our own: they find this very package.

    Where it is installed they find it as we did; ahead of the standard library its neighbours would hide parts of that.
    """
    return os.pathsep.join(part for part in (str(CHECKOUT or ""), os.environ.get("PYTHONPATH", "")) if part)


def cache(named: str = "") -> Path:
    """The folder of all that is kept between runs: `named`, $ASSAY_CACHE, $XDG_CACHE_HOME/assay or ~/.cache/assay.

    XDG_CACHE_HOME counts only where it is absolute, as XDG has it. Raises UsageError where there is no home either.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else "~/.cache"
    try:
        return Path(named or os.environ.get("ASSAY_CACHE") or f"{base}/assay").expanduser().resolve()
    except RuntimeError as error:
        raise UsageError("there is no home folder for a cache; name a folder in ASSAY_CACHE") from error


def portable(text: str) -> str:
    """`text` without where the package lies and whose home this is; what only begins like such a path is left."""
    for place, instead in ((f"{PACKAGE.parent}/", ""), (os.path.expanduser("~"), "~")):
        # "/" is where a container's processes are at home; every path begins with it.
        if os.path.isabs(place) and place.strip("/"):
            text = re.sub(rf"(?<![\w.~/-]){re.escape(place)}(?![\w-])" if instead else re.escape(place), instead, text)
    return text
