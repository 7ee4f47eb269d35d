"""Two runs side by side as one page: each candidate as a slope from A to B, and a table of all figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from harness.reports import compare, text
from harness.reports.compare import Row
from harness.reports.facts import CODE, facts
from harness.reports.html import render, slopes


@dataclass(frozen=True)
class Chapter:
    """The rows of one problem at one variant and precision, on one device."""

    title: tuple[str, str, str, str]
    rows: list[Row]
    figure: Markup | None


def report(rows: Sequence[Row], notes: Iterable[str], runs: Sequence[tuple[str, Path, Mapping[str, Any]]]) -> str:
    """The whole page. `runs` has letter, folder and manifest of A, then of B."""
    chapters: list[Chapter] = []
    for title, members in itertools.groupby(rows, key=lambda row: row.group):
        group = list(members)
        chapters.append(Chapter(title, group, slopes.slopes(group, f"s{len(chapters)}")))
    return render.page(
        "compare.html",
        runs=[(letter, folder.resolve().name, facts(manifest)) for letter, folder, manifest in runs],
        code=CODE,
        notes=list(notes),
        summary=compare.summary(rows),
        counts=compare.counts(rows),
        chapters=chapters,
        ratio=lambda found: text.ratio(found.value, found.lo, found.hi),
    )
