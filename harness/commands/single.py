"""One candidate in place of a config: what `run mine.py` and `profile mine.py` evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import places
from harness.catalog import problems
from harness.commands.saying import said
from harness.errors import UsageError


def of_one_candidate(path: Path, problem: str) -> dict[str, Any]:
    """What a config says that selects one candidate: of the problem that is named, or else of that of its folders.

    Raises UsageError where neither names a problem.
    """
    told = "/".join(places.real(path).parent.parts[-2:])
    try:
        found = problems.by_name(problem) if problem else problems.above(path, told) or problems.by_name(told)
    except UsageError as error:
        if problem:
            raise
        advice = "name it: --problem attention/sdpa"
        raise UsageError(f"which problem {said(path)} solves, its folders do not tell; {advice}") from error
    solved = f"{places.real(found).parent.name}/{found.stem}"
    return {"problems": [str(found)], "solutions": [str(path)], "variants": ["default"], "solves": solved}
