"""The terminal's view: the leaderboard, and the progress of a run."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.console import Group as Stack
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.records import Record, Status
from harness.reports import agreement, samples, text
from harness.reports.groups import Entry, Group, grouped, summarise

# Red: the candidate is wrong or dishonest. Yellow: it failed or met a limit. Magenta: not its fault.
STYLES = dict.fromkeys(Status, "yellow") | {
    Status.PASSED: "green",
    Status.INCORRECT: "red",
    Status.REJECTED: "bold red",
    Status.UNSUPPORTED: "dim",
    Status.INVALID_REFERENCE: "magenta",
    Status.HARNESS_ERROR: "bold magenta",
}
STATUS_WIDTH = max(map(len, Status))
GAP = 2
# Notes narrower than this go on lines of their own; they are never wider than the second.
NOTES_MIN, NOTES_MAX = 40, 80
# Candidate names get narrower than this only in a very narrow terminal.
NAME_MIN = 16


def leaderboard(
    records: Sequence[Record],
    console: Console,
    manifest: Mapping[str, Any] | None = None,
    *,
    every: bool = False,
) -> None:
    """Print a table for each group, best candidate first, then the summary and a note if the sandbox was incomplete.

    Candidates that lack something of this machine (`text.lacking`) are counted in a line, unless `every` one is wanted.
    """
    groups = grouped(records)
    summary = summarise(groups)
    if summary is None:
        console.print("No records yet.")
        return
    shown = [[one for one in group.entries if every or not text.lacking(one.record)] for group in groups]
    columns = _Columns.fit([_cells(entry) for entries in shown for entry in entries], console.width)
    for group, entries in zip(groups, shown, strict=True):
        console.print(_heading(group))
        if entries:
            console.print(columns.line(TITLES, Text()), style="bold")
            console.print(Rule(style="dim"), width=columns.rule)
        for entry in entries:
            console.print(columns.line(_cells(entry), _notes(entry.record)))
        for line in [] if every else _folded(group):
            console.print(line, style="dim")
        console.print()
    count = sum(summary.statuses.values())
    statuses = [Text(f"{number} {status}", style=STYLES[status]) for status, number in summary.statuses.items()]
    total = Text(f"{count} {'candidate' if count == 1 else 'candidates'}: ", style="bold")
    console.print(Text.assemble(total, Text(", ").join(statuses), f". {text.scores(summary)}"))
    for said in agreement.summaries(records):
        console.print(Text(said))
    if lines := samples.lines(records):
        console.print(Text("\n".join(["", *lines])))
    if note := text.sandbox_note(manifest or {}):
        console.print(Text.assemble(("note: ", "yellow"), note))


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
    return Text.assemble((text.clean(group.problem), "bold cyan"), size, (baseline, "italic"))


def _cells(entry: Entry) -> list[Text]:
    """Six cells, or four for a candidate that did not pass: it has a reason in place of a speedup and a time."""
    record = entry.record
    rank = Text(str(entry.rank or ""), justify="right")
    name = Text(text.clean(record.candidate), style="bold" if entry.rank == 1 else "")
    status = Text(record.status, style=STYLES[record.status])
    error = Text(text.number(record.error_ratio), justify="right")
    if record.status is not Status.PASSED:
        return [rank, name, Text.assemble(status, " · ", text.clean(record.reason)), error]
    speedup = Text(text.speedup(record), style=_speedup_style(record))
    return [rank, name, status, speedup, Text(text.duration(record.candidate_ms), justify="right"), error]


def _speedup_style(record: Record) -> str:
    """Green or red only if the whole interval is faster or slower."""
    if record.speedup_lo is not None and record.speedup_lo > 1:
        return "green"
    return "red" if record.speedup_hi is not None and record.speedup_hi < 1 else ""


def _notes(record: Record) -> Text:
    lines = [Text(text.clean(record.caption), style="dim"), Text(text.clean(record.message))]
    lines.append(Text(text.provenance(record), style="dim"))
    lines.append(Text(agreement.remark(record), style="yellow" if agreement.dispute(record) else "dim"))
    lines += [Text(f"warning: {text.clean(warning)}", style="yellow") for warning in record.warnings]
    if record.log and record.status is not Status.PASSED:
        lines.append(Text(f"log: {text.clean(record.log)}", style="dim"))
    return Text("\n").join(line for line in lines if line)


@dataclasses.dataclass(frozen=True)
class _Activity:
    job: str
    phase: str
    since: float


class Progress:
    """A run's progress, as a context manager: a live display in a terminal, otherwise a plain line for each event.

    The methods may be called from several threads. Plain mode is for logs: no control sequences and no line for phases.
    After `quiet_s` seconds without a line it prints what is running, so that a reader can see that it is not stuck.
    """

    def __init__(self, console: Console, quiet_s: float = 60.0) -> None:
        self._console = console
        self._quiet_s = quiet_s
        # Held while printing, so that lines come out in the order of their numbers. The display's own thread, which
        # prints under a lock of rich's, must therefore never take it: it reads `_slots`, replaced and never changed.
        self._lock = threading.Lock()
        self._slots: dict[str, _Activity] = {}
        self._total = 0
        self._done = 0
        self._began = self._last_line = time.monotonic()
        self._closed = threading.Event()
        self._reminder = threading.Thread(target=self._remind, name="progress-reminder", daemon=True)
        # FORCE_COLOR makes rich call a CI log a terminal; a live display there would be a page of cursor movements.
        self._live: Live | None = None
        if console.is_interactive and console.file.isatty():
            self._live = Live(console=console, get_renderable=self._display, refresh_per_second=4, transient=True)

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        else:
            self._reminder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        if self._live:
            self._live.stop()
        else:
            self._reminder.join()

    def start(self, total: int, resumed: int) -> None:
        """`total` counts all jobs of the run, including the `resumed` ones, which already have their records."""
        with self._lock:
            self._total, self._done = total, resumed
            already = f", {resumed} of them already finished" if resumed else ""
            self._print(Text(), f"{total} {'job' if total == 1 else 'jobs'}{already}")

    def phase(self, slot: str, job: str, phase: str) -> None:
        """`slot` now works on `job` and is in `phase`; an empty phase means that it is idle.

        `job` is written "problem variant precision candidate". It is in one slot at a time: a call with another slot
        moves it there, and `finished` removes it.
        """
        with self._lock:
            slots = {name: activity for name, activity in self._slots.items() if activity.job != job and name != slot}
            if phase:
                slots[slot] = _Activity(job, phase, time.monotonic())
            self._slots = slots

    def finished(self, record: Record) -> None:
        """Show the verdict and count the job."""
        job = f"{record.problem} {record.variant} {record.precision} {record.candidate}"
        with self._lock:
            self._done += 1
            self._slots = {name: activity for name, activity in self._slots.items() if activity.job != job}
            place = f"[{self._done:>{len(str(self._total))}}/{self._total}] "
            status = Text(f"{record.status:<{STATUS_WIDTH}} ", style=STYLES[record.status])
            self._print(Text.assemble(place, status), text.clean(job), _outcome(record))

    def note(self, message: str) -> None:
        """Print a note among the verdicts."""
        with self._lock:
            self._print(Text(), text.clean(message))

    def _print(self, head: Text, *parts: str) -> None:
        self._last_line = time.monotonic()
        rest = "  ".join(parts)
        if not self._live:
            self._console.print(head.plain + rest, markup=False, highlight=False, emoji=False, soft_wrap=True)
        elif head:
            fits = len(head) + len(rest) <= self._console.width
            line = Table.grid()
            line.add_column(no_wrap=True)
            line.add_row(head, Text(rest if fits else "\n".join(parts)))
            self._console.print(line)
        else:
            self._console.print(Text(rest))

    def _remind(self) -> None:
        while not self._closed.wait(self._quiet_s):
            with self._lock:
                if time.monotonic() - self._last_line >= self._quiet_s:
                    for slot, activity in sorted(self._slots.items()):
                        waited = text.elapsed(time.monotonic() - activity.since)
                        job = text.clean(activity.job)
                        self._print(Text(), f"still {activity.phase} on {slot}: {job} ({waited})")

    def _display(self) -> RenderableType:
        slots = self._slots
        building = sum(activity.phase.startswith("build") for activity in slots.values())
        state = [f"{self._done}/{self._total} jobs", text.elapsed(time.monotonic() - self._began)]
        if building:
            state.insert(1, f"{building} building")
        bar = Table.grid(padding=(0, GAP, 0, 0))
        bar.add_row(ProgressBar(total=max(self._total, 1), completed=self._done, width=30), " · ".join(state))
        rows = Table.grid(padding=(0, GAP, 0, 0), expand=True)
        rows.add_column(style="cyan", no_wrap=True)
        rows.add_column(no_wrap=True)
        rows.add_column(no_wrap=True, ratio=1)
        rows.add_column(no_wrap=True, justify="right", style="dim")
        for slot, activity in sorted(slots.items()):
            since = text.elapsed(time.monotonic() - activity.since)
            rows.add_row(Text(slot), Text(activity.phase), Text(text.clean(activity.job)), since)
        return Stack(bar, rows)


def _outcome(record: Record) -> str:
    if record.status is Status.PASSED:
        return f"{text.speedup(record)}  {text.duration(record.candidate_ms)}"
    return "  ".join(text.clean(part) for part in (record.reason, record.message) if part)
