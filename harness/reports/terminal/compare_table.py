"""The comparison of two runs for the terminal."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.records import Record, Status
from harness.reports import compare, text
from harness.reports.compare import ChangeKind, Row
from harness.reports.terminal import styles
from harness.reports.terminal.leaderboard import GAP, NAME_MIN

COLOURS = {
    ChangeKind.BROKEN: f"bold {styles.BAD}",
    ChangeKind.SLOWER: styles.BAD,
    ChangeKind.MISSING: styles.DOUBT,
    ChangeKind.FIXED: styles.GOOD,
    ChangeKind.FASTER: styles.GOOD,
    ChangeKind.NOT_COMPARED: styles.OURS,
    ChangeKind.SAME: "dim",
    ChangeKind.STILL_FAILS: "dim",
}
NAME_TITLE = "candidate"
# A status and its reason get narrower than this only in a very narrow terminal.
DETAIL_MIN = 30


def head(letter: str, run_dir: Path, manifest: Mapping[str, Any]) -> Text:
    """Which run this is: its folder, start, device and commit, as far as the manifest has them."""
    environment = manifest.get("environment") or {}
    commit = environment.get("commit")
    facts = [run_dir, manifest.get("started_at"), environment.get("device"), f"commit {commit}" if commit else ""]
    return Text.assemble((f"{letter}  ", "bold"), " · ".join(text.clean(str(fact)) for fact in facts if fact))


def comparison(rows: Sequence[Row], notes: Iterable[str], console: Console) -> None:
    """Print the notes, a table for each problem at one variant and precision, and the summary."""
    for note in notes:
        console.print(Text.assemble(("note: ", styles.DOUBT), note))
    if rows:
        console.print()
        _tables(rows, console)
    console.print(Text(compare.summary(rows)))


def _tables(rows: Sequence[Row], console: Console) -> None:
    speedups = _Speedups(rows)
    details = {id(row): speedups.line(row) for row in rows}
    widths = _widths(rows, [speedups.title, *details.values()], console.width)
    several = len({row.either.device for row in rows}) > 1
    for _, members in itertools.groupby(rows, key=lambda row: row.group):
        group = list(members)
        console.print(_heading(group, several))
        console.print(_line([Text(), Text(NAME_TITLE), speedups.title], widths), style="bold")
        console.print(Rule(style="dim"), width=min(sum(widths) + 2 * GAP, console.width))
        for row in group:
            change = Text(row.change, style=COLOURS.get(row.change, ""))
            console.print(_line([change, _name(row), details[id(row)]], widths))
        console.print()


class _Speedups:
    """The last column: both speedups and their ratio, lined up, or the change of status."""

    def __init__(self, rows: Sequence[Row]) -> None:
        both = [row for row in rows if _passed(row.a) and _passed(row.b)]
        self._a = max((len(_speedup(row.a)) for row in both), default=1)
        self._b = max((len(_speedup(row.b)) for row in both), default=1)
        self.title = Text(f"{'A':>{self._a}}  {'B':>{self._b}}  {'B over A' if both else ''}".rstrip())

    def line(self, row: Row) -> Text:
        if not (_passed(row.a) and _passed(row.b)):
            return self._status_change(row)
        figures = f"{_speedup(row.a):>{self._a}}  {_speedup(row.b):>{self._b}}  "
        if row.ratio is None:
            return Text.assemble(figures, (f"different {row.obstacle}", styles.OURS))
        ratio = text.ratio(row.ratio.value, row.ratio.lo, row.ratio.hi)
        return Text.assemble(figures, (ratio, COLOURS.get(row.change, "")))

    def _status_change(self, row: Row) -> Text:
        if row.change is ChangeKind.STILL_FAILS and row.a and row.b and row.a.reason == row.b.reason:
            return _state(row.b)
        before = _state(row.a, self._a) if row.a else Text("not in A", style="dim")
        after = _state(row.b) if row.b else Text("not in B", style="dim")
        return Text.assemble(before, " → ", after)


def _state(record: Record, width: int = 0) -> Text:
    """The speedup of a passed record, as wide as its column; status and reason of any other record."""
    if _passed(record):
        return Text(f"{_speedup(record):>{width}}")
    reason = text.clean(record.reason)
    return Text.assemble((record.status, styles.STATUSES[record.status]), f" · {reason}" if reason else "")


def _passed(record: Record | None) -> bool:
    return record is not None and record.status is Status.PASSED


def _speedup(record: Record | None) -> str:
    return text.factor(record.speedup) if record and record.speedup is not None else ""


def _name(row: Row) -> Text:
    return Text(text.clean(row.either.candidate))


def _heading(group: Sequence[Row], with_device: bool) -> Text:
    problem, variant, precision, device = map(text.clean, group[0].group)
    facts = [variant, precision, *([device] if with_device else [])]
    return Text.assemble((problem, "bold"), f" · {' · '.join(facts)} · ", (_baselines(group), "italic"))


def _baselines(group: Sequence[Row]) -> str:
    """`baseline eager 7.42 ms → 7.45 ms`: the median of A's records, then of B's, for each baseline by name."""
    sides = [[record for record in side if record] for side in ([row.a for row in group], [row.b for row in group])]
    said = []
    for name in sorted({record.baseline for side in sides for record in side}):
        times = [_median_ms([record.baseline_ms for record in side if record.baseline == name]) for side in sides]
        said.append(f"{text.clean(name)} {' → '.join(dict.fromkeys(filter(None, times)))}".rstrip())
    return f"baseline {', '.join(said)}"


def _median_ms(times: Iterable[float | None]) -> str:
    timed = [time for time in times if time is not None]
    return text.duration(statistics.median(timed)) if timed else ""


def _widths(rows: Sequence[Row], details: Sequence[Text], width: int) -> list[int]:
    """Widths of change, name and detail, the same in every table. If there is little space, details fold first."""
    change = max(len(row.change) for row in rows)
    name = max(len(NAME_TITLE), *(_name(row).cell_len for row in rows))
    detail = max(cell.cell_len for cell in details)
    room = width - change - 2 * GAP
    both = [cell for cell, row in zip(details[1:], rows, strict=True) if _passed(row.a) and _passed(row.b)]
    figures = max((cell.cell_len for cell in both), default=0)
    detail = min(detail, max(room - name, figures, DETAIL_MIN))
    return [change, min(name, max(room - detail, NAME_MIN)), detail]


def _line(cells: Sequence[Text], widths: Sequence[int]) -> RenderableType:
    table = Table.grid(padding=(0, GAP, 0, 0))
    for width in widths:
        table.add_column(width=width, overflow="fold")
    table.add_row(*cells)
    return table
