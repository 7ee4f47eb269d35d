"""The problems of a KernelBench checkout by level, and number or name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness import wording
from harness.errors import UsageError
from harness.packs.files import Unusable
from harness.packs.sample import Identity

LEVEL = re.compile(r"level(\d{1,4})", re.ASCII)


def levels_in(checkout: Path) -> Path:
    """The folder of a KernelBench checkout that holds level1 and the others. Raises UsageError if there is none."""
    root = next((root for root in (checkout / "KernelBench", checkout) if os.path.isdir(root / "level1")), None)
    if root is None:
        raise UsageError(f"no level1/ in {wording.plain(str(checkout), 300)}: name a checkout of KernelBench")
    return root


class Checkout:
    """A folder of problems, listed once."""

    def __init__(self, place: Path) -> None:
        self._root = levels_in(place)
        self._problems: dict[int, list[Path]] = {}
        for folder in sorted(self._root.iterdir()):
            if found := LEVEL.fullmatch(folder.name):
                self._problems[int(found[1])] = sorted(folder.glob("*.py"))

    def files(self) -> list[Path]:
        """Of all problems."""
        return [path for level in self._problems.values() for path in level]

    def find(self, wanted: Identity) -> Path:
        """The problem's file. Raises Unusable for a problem that is not named, not there, or there twice."""
        if not wanted.problem:
            raise Unusable("it does not say which problem it solves: name a field with --problem-field, or --problem")
        shown = wording.plain(wanted.problem, 100, kept="")
        numbered = wanted.problem.isdecimal()
        if numbered and wanted.level is None:
            raise Unusable(f"it does not say of which level problem {shown} is: --level-field or --level")
        levels = self._problems if wanted.level is None else [wanted.level]
        found = [
            path
            for level in levels
            for path in self._problems.get(level, [])
            if (path.stem.partition("_")[0] if numbered else path.stem) == wanted.problem
        ]
        if len(found) == 1:
            return found[0]
        where = "" if wanted.level is None else f" in level {wanted.level}"
        raise Unusable(f"KernelBench has {len(found) or 'no'} problem{'s' if found else ''} '{shown}'{where}")
