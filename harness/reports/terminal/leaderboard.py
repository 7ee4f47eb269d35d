"""The leaderboard in the terminal."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.console import Group as Stack
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.records import Record, Status, presentable
from harness.reports import agreement, samples, text
from harness.reports.groups import Entry, Group, grouped, summarise
from harness.reports.terminal import styles
from harness.store import listed

GAP = 2
# Notes narrower than this go on lines of their own; they are never wider than the second.
NOTES_MIN, NOTES_MAX = 40, 80
# A run may have thousands of rows, which nobody reads here: of more than MOST_ROWS there are about FEWER_ROWS, but one
# at least of each problem. KernelBench has 250 problems.
MOST_ROWS, FEWER_ROWS = 250, 100
# Candidate names get narrower than this only in a very narrow terminal.
NAME_MIN = 16


def show(
    records: Sequence[Record],
    console: Console,
    manifest: Mapping[str, Any] | None = None,
    *,
    every: bool = False,
) -> None:
    """Print a table for each group, best candidate first, then the summary and a note if the sandbox was incomplete.

    Unless `every` candidate is wanted, those that lack something of this machine (`text.lacking`) are only counted, and
    so are those for which there are too many.
    """
    groups = grouped(records)
    summary = summarise(groups)
    if summary is None:
        console.print("No records yet.")
        return
    wanted = [[one for one in group.entries if every or not text.lacking(one.record)] for group in groups]
    # Of a run on disk, records may be another version's.
    shown = [
        [Entry(entry.rank, presentable(entry.record)) for entry in entries]
        for entries in (wanted if every else _cut(wanted))
    ]
    columns = _Columns.fit([_cells(entry) for entries in shown for entry in entries], console.width)
    for group, entries, whole in zip(groups, shown, wanted, strict=False):
        console.print(_heading(group))
        if entries:
            console.print(columns.line(TITLES, Text()), style="bold")
            console.print(Rule(style="dim"), width=columns.rule)
        for entry in entries:
            console.print(columns.line(_cells(entry), _notes(entry.record)))
        if more := len(whole) - len(entries):
            console.print(f"{more} more {_candidates(more)} (--all shows each)", style="dim")
        for line in [] if every else _folded(group):
            console.print(line, style="dim")
        console.print()
    if more := len(groups) - len(shown):
        many = sum(len(group.entries) for group in groups[len(shown) :])
        problems = "problem" if more == 1 else "problems"
        console.print(f"{more} more {problems} with {many} {_candidates(many)} (--all shows each)\n", style="dim")
    count = sum(summary.statuses.values())
    total = Text(f"{count} {_candidates(count)}: ", style="bold")
    statuses = Text(", ").join(styles.counts(summary.statuses))
    console.print(Text.assemble(total, statuses, f". {text.scores(summary)}"))
    for said in agreement.summaries(records):
        console.print(Text(said))
    if lines := samples.lines(records):
        console.print(Text("\n".join(["", *lines])))
    for note in filter(None, (listed.unfinished(records, manifest or {}), text.sandbox_note(manifest or {}))):
        console.print(Text.assemble(("note: ", styles.DOUBT), note))


def _cut(groups: Sequence[list[Entry]]) -> Sequence[list[Entry]]:
    """The first entries of each group, or of the first MOST_ROWS groups, if there are too many."""
    if sum(map(len, groups)) <= MOST_ROWS:
        return groups
    return [entries[: max(1, FEWER_ROWS // len(groups))] for entries in groups[:MOST_ROWS]]


def _candidates(count: int) -> str:
    return "candidate" if count == 1 else "candidates"


def _folded(group: Group) -> list[Text]:
    """A line for each thing that candidates need and this machine lacks."""
    lacking = Counter(filter(None, (text.lacking(entry.record) for entry in group.entries)))
    return [
        Text(f"{number} {'candidate needs' if number == 1 else 'candidates need'} {what} (--all shows each)")
        for what, number in lacking.items()
    ]


TITLES = [
    Text("#", justify="right"),
    Text("candidate"),
    Text("status"),
    Text("speedup"),
    Text("time", justify="right"),
    Text("error", justify="right"),
]


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Column widths in characters, the same in every group so that the tables line up.

    In a wide terminal notes are the last column; otherwise they go below their candidate's line, indented.
    """

    widths: list[int]
    notes: int

    @classmethod
    def fit(cls, lines: Sequence[list[Text]], width: int) -> _Columns:
        full = [line if len(line) == len(TITLES) else [*line[:2], Text(), Text(), Text(), line[-1]] for line in lines]
        widths = [max(cell.cell_len for cell in column) for column in zip(TITLES, *full, strict=True)]
        room = width - sum(widths) - GAP * len(widths)
        # A reason in place of figures, where no figure is as wide.
        wanted = max((line[2].cell_len for line in lines if len(line) < len(TITLES)), default=0)
        more = max(0, min(wanted - _span(widths[2:5]), room + GAP))
        widths[3], room = widths[3] + more, room - more
        if room >= NOTES_MIN:
            return cls(widths, min(room, NOTES_MAX))
        # The gap after the last column is not needed without notes.
        widths[1] = max(min(widths[1], NAME_MIN), widths[1] + min(room + GAP, 0))
        return cls(widths, 0)

    @property
    def rule(self) -> int | None:
        """Length of the line below the titles; None for the whole width, if notes are a column."""
        return _span([*self.widths, self.notes]) if self.notes else None

    def line(self, cells: Sequence[Text], notes: Text) -> RenderableType:
        # With four cells, the third spans status, speedup and time.
        widths = self.widths
        if len(cells) < len(widths):
            widths = [*widths[:2], _span(widths[2:5]), widths[5]]
        table = Table.grid(padding=(0, GAP, 0, 0))
        for width in [*widths, self.notes] if self.notes else widths:
            table.add_column(width=width, overflow="fold")
        if self.notes:
            table.add_row(*cells, notes)
            return table
        table.add_row(*cells)
        return Stack(table, Padding(notes, (0, 0, 0, _span(self.widths[:1]) + 2 * GAP))) if notes else table


def _span(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _heading(group: Group) -> Text:
    baseline = f"baseline {text.clean(group.baseline)} {text.duration(group.baseline_ms)}".rstrip()
    size = f" · {text.clean(group.variant)} · {text.clean(group.precision)} · "
    return Text.assemble((text.clean(group.problem), "bold"), size, (baseline, "italic"))


def _cells(entry: Entry) -> list[Text]:
    """Six cells, or four for a candidate that did not pass: it has a reason in place of a speedup and a time."""
    record = entry.record
    rank = Text(str(entry.rank or ""), justify="right")
    name = Text(text.clean(record.candidate), style="bold" if entry.rank == 1 else "")
    status = Text(record.status, style=styles.STATUSES[record.status])
    error = Text(text.number(record.error_ratio), justify="right")
    if record.status is not Status.PASSED:
        return [rank, name, Text.assemble(status, " · ", text.clean(record.reason)), error]
    speedup = Text(text.speedup(record), style=_speedup_style(record))
    return [rank, name, status, speedup, Text(text.duration(record.candidate_ms), justify="right"), error]


def _speedup_style(record: Record) -> str:
    """Coloured only if the whole interval is faster or slower."""
    return {"faster": styles.GOOD, "slower": styles.BAD}.get(text.sure(record), "")


def _notes(record: Record) -> Text:
    lines = [Text(text.clean(record.caption), style="dim"), Text(text.clean(record.message))]
    lines.append(Text(text.provenance(record), style="dim"))
    lines.append(Text(agreement.remark(record), style=styles.DOUBT if agreement.dispute(record) else "dim"))
    lines += [Text(f"warning: {text.clean(warning)}", style=styles.DOUBT) for warning in record.warnings]
    if record.log and record.status is not Status.PASSED:
        lines.append(Text(f"log: {text.clean(record.log)}", style="dim"))
    return Text("\n").join(line for line in lines if line)
