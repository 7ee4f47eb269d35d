"""One candidate in place of a config: what `run mine.py` and `profile mine.py` evaluate."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness import places
from harness.catalog import problems
from harness.commands.saying import said
from harness.errors import UsageError, nearest

# How alike a name must be to be meant.
ALIKE = 0.6


def of_one_candidate(path: Path, problem: str, within: Sequence[str] = ()) -> dict[str, Any]:
    """What a config says that selects one candidate: of the problem that is named, or else of that of its folders.

    The problem is one of those `within` (files, folders and globs) where any are given. Raises UsageError where neither
    names a problem.
    """
    told = "/".join(places.real(path).parent.parts[-2:])
    some = problems.among(within)
    try:
        if some:
            found = _named(problem or told, some)
        else:
            found = problems.by_name(problem) if problem else problems.above(path, told) or problems.by_name(told)
    except UsageError as error:
        if problem:
            raise
        advice = _advice(told, path.stem, some or problems.names())
        raise UsageError(f"which problem {said(path)} solves, its folders do not tell; {advice}") from error
    solved = f"{places.real(found).parent.name}/{found.stem}"
    return {"problems": [str(found)], "solutions": [str(path)], "variants": ["default"], "solves": solved}


def _named(name: str, some: dict[str, Path]) -> Path:
    """The one of some problems that is called so: by its folder and name, by its name alone, or by its path."""
    by_path = [path for path in some.values() if places.real(path) == places.real(Path(name))]
    fits = by_path or [path for known, path in some.items() if name in (known, path.stem)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise UsageError(f"'{said(name)}' may be {said(' or '.join(sorted(map(str, fits))))}; name one of them")
    raise UsageError(f"--problems has no problem '{said(name)}'; {nearest(name, some)}")


def _advice(told: str, own: str, known: Iterable[str]) -> str:
    """Which problem may be meant, by the names of the candidate's folders or by its own."""
    by_name = {name.rpartition("/")[2]: name for name in known}
    close = difflib.get_close_matches(told, by_name.values(), n=1, cutoff=ALIKE)
    close += [by_name[name] for name in difflib.get_close_matches(own, by_name, n=1, cutoff=ALIKE)]
    return f"did you mean --problem {close[0]}?" if close else "name it: --problem SET/NAME"
