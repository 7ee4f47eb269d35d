"""The progress of a run: a live view in a terminal, elsewhere a plain line for each event."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from types import TracebackType

from rich.console import Console, RenderableType
from rich.console import Group as Stack
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from harness.records import Record, Status
from harness.reports import text
from harness.reports.terminal import styles

STATUS_WIDTH = max(map(len, Status))
GAP = 2
# Lines of the view beside those of the slots, and one for the cursor.
OTHER_LINES = 5
# Of most phases with what they have reached, so that the lines' other columns stay where they are.
PHASE_WIDTH = len("timing ±0.75% → 0.5%")
# A candidate's name gets at least so much, and most of what the other columns leave.
NAME_MIN, OTHER_COLUMNS = 12, 50
# Verdicts of this run that a time left is told from.
FEWEST_VERDICTS = 2

SOLVED, UNSOLVED, NOT_HERE = "solved", "without a right candidate", "not for this machine"
UNDER_WAY, TO_COME = "under way", "to come"

Planned = tuple[str, str, str, str]
"""A job's problem, variant, precision and candidate."""
_Problem = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class _Activity:
    job: str
    phase: str
    since: float


@dataclasses.dataclass(frozen=True)
class _Tally:
    """The jobs of a run and what became of them; never changed, so that it can be read without a lock.

    `jobs` and `done` are counted by problem (at one variant and precision), `solved` ones have a candidate that passed,
    `tried` ones one that this machine can run. A judge had `evaluated` of them in this call, from `since` to `last`
    (seconds of the monotonic clock).
    """

    jobs: Counter[_Problem] = dataclasses.field(default_factory=Counter)
    done: Counter[_Problem] = dataclasses.field(default_factory=Counter)
    solved: frozenset[_Problem] = frozenset()
    tried: frozenset[_Problem] = frozenset()
    statuses: Counter[Status] = dataclasses.field(default_factory=Counter)
    evaluated: int = 0
    since: float | None = None
    last: float = 0.0

    def plus(self, records: Iterable[Record]) -> _Tally:
        ends = [((record.problem, record.variant, record.precision), record) for record in records]
        return dataclasses.replace(
            self,
            done=self.done + Counter(problem for problem, _ in ends),
            solved=self.solved | {problem for problem, record in ends if record.status is Status.PASSED},
            tried=self.tried | {problem for problem, record in ends if not text.lacking(record)},
            statuses=self.statuses + Counter(record.status for _, record in ends),
        )

    def left_s(self, now: float) -> float | None:
        """About how long the rest takes, by what a verdict took so far; None where that says nothing."""
        left = self.jobs.total() - self.done.total()
        if self.since is None or self.evaluated < FEWEST_VERDICTS or not left:
            return None
        a_verdict = (self.last - self.since) / self.evaluated
        rest = max(left * a_verdict - (now - self.last), (left - 1) * a_verdict)
        return rest if rest >= 1 else None

    def problems(self, begun: Set[_Problem]) -> dict[str, int]:
        """How many problems are how far, in the order of the words; `begun` have a candidate in some slot."""
        found = Counter(self._how_far(problem, problem in begun) for problem in self.jobs)
        return {word: found[word] for word in (SOLVED, UNSOLVED, NOT_HERE, UNDER_WAY, TO_COME) if found[word]}

    def _how_far(self, problem: _Problem, begun: bool) -> str:
        if self.done[problem] < self.jobs[problem]:
            return UNDER_WAY if begun or self.done[problem] else TO_COME
        if problem in self.solved:
            return SOLVED
        return UNSOLVED if problem in self.tried else NOT_HERE


class Progress:
    """A run's progress, as a context manager: a live view in a terminal, otherwise a plain line for each event.

    The methods may be called from several threads. Plain mode is for logs: no control sequences and no line for phases.
    After `quiet_s` seconds without a line it prints what is running, so that a reader can see that it is not stuck.
    """

    def __init__(self, console: Console, quiet_s: float = 60.0) -> None:
        self._console = console
        self._quiet_s = quiet_s
        # Held while printing, so that lines come out in the order of their numbers. The view's own thread, which
        # prints under a lock of rich's, must therefore never take it: what it reads is replaced and never changed.
        self._lock = threading.Lock()
        self._slots: dict[str, _Activity] = {}
        self._planned: dict[str, Planned] = {}
        self._lacks: set[str] = set()
        self._tally = _Tally()
        self._began = self._last_line = time.monotonic()
        self._closed = threading.Event()
        self._reminder = threading.Thread(target=self._remind, name="progress-reminder", daemon=True)
        self._live: Live | None = None
        if _is_watched(console):
            self._live = Live(console=console, get_renderable=self._view, refresh_per_second=4, transient=True)

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

    def start(self, jobs: Iterable[Planned], earlier: Iterable[Record] = ()) -> None:
        """All `jobs` of the run, and the records of those that are already finished."""
        with self._lock:
            self._planned = {" ".join(job): job for job in jobs}
            self._tally = _Tally(jobs=Counter(job[:3] for job in self._planned.values())).plus(earlier)
            total, resumed = self._tally.jobs.total(), self._tally.done.total()
            already = f", {resumed} of them already finished" if resumed else ""
            self._print(Text(), f"{total} {'job' if total == 1 else 'jobs'}{already}")

    def phase(self, slot: str, job: str, phase: str) -> None:
        """`slot` now works on `job` and is in `phase`; an empty phase means that it is idle.

        `job` is written "problem variant precision candidate". It is in one slot at a time: a call with another slot
        moves it there, and `finished` removes it. There may be any number of slots, with any names.
        """
        with self._lock:
            now = time.monotonic()
            before = self._slots.get(slot)
            slots = {name: activity for name, activity in self._slots.items() if activity.job != job and name != slot}
            if phase:
                # What a phase has reached is told while it lasts, and does not begin it anew.
                same = before and (before.job, _first_word(before.phase)) == (job, _first_word(phase))
                slots[slot] = _Activity(job, phase, before.since if before and same else now)
            # A slot that waits for builds has no job.
            if phase and self._tally.since is None and job in self._planned and not _builds(phase):
                self._tally = dataclasses.replace(self._tally, since=now)
            self._slots = slots

    def finished(self, record: Record) -> None:
        """Show the verdict and count the job."""
        job = record.title
        with self._lock:
            self._tally = self._tally.plus([record])
            if record.phases_s:
                # A job that no judge had took no time, and those that are left may take some.
                evaluated = self._tally.evaluated + 1
                self._tally = dataclasses.replace(self._tally, evaluated=evaluated, last=time.monotonic())
            self._slots = {name: activity for name, activity in self._slots.items() if activity.job != job}
            total = self._tally.jobs.total()
            place = f"[{self._tally.done.total():>{len(str(total))}}/{total}] "
            status = Text(f"{record.status:<{STATUS_WIDTH}} ", style=styles.STATUSES[record.status])
            if lack := text.lacking(record):
                # One of many alike, which the leaderboard sums up.
                if lack not in self._lacks:
                    self._lacks.add(lack)
                    self._print(Text(), f"candidates that need {lack} are counted, and not listed here")
                return
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

    def _view(self) -> RenderableType:
        now, tally, slots = time.monotonic(), self._tally, self._slots
        jobs = [self._planned[one.job] for one in slots.values() if one.job in self._planned]
        begun = {job[:3] for job in jobs}
        return Stack(self._bar(tally, now), *_counts(tally, begun), *self._rows(slots, now))

    def _bar(self, tally: _Tally, now: float) -> RenderableType:
        total, done = tally.jobs.total(), tally.done.total()
        said = [f"{done}/{total} jobs", text.elapsed(now - self._began)]
        if (left_s := tally.left_s(now)) is not None:
            said.append(f"about {text.elapsed(left_s)} left")
        line = Table.grid(padding=(0, GAP, 0, 0), expand=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        bar = ProgressBar(total=max(total, 1), completed=done, complete_style=styles.GOOD, finished_style=styles.GOOD)
        line.add_row(bar, " · ".join(said))
        return line

    def _rows(self, slots: dict[str, _Activity], now: float) -> Iterator[RenderableType]:
        """A line for each slot, those that evaluate first; what has no room is counted."""
        room = max(self._console.height - OTHER_LINES, 1)
        order = sorted(slots.items(), key=lambda one: (_builds(one[1].phase), _natural(one[0])))
        rows = Table.grid(padding=(0, GAP, 0, 0), expand=True)
        rows.add_column(no_wrap=True, style="bold", min_width=max(map(len, slots), default=0))
        rows.add_column(no_wrap=True, min_width=PHASE_WIDTH)
        # The candidate first: it is the problem that is cut where the terminal is narrow.
        rows.add_column(no_wrap=True, max_width=max(NAME_MIN, (self._console.width - OTHER_COLUMNS) * 3 // 4))
        rows.add_column(no_wrap=True, ratio=1, style="dim")
        rows.add_column(no_wrap=True, justify="right", style="dim", min_width=len("59 s"))
        shown = order if len(order) <= room else order[: room - 1]
        for slot, activity in shown:
            *group, candidate = map(text.clean, self._planned.get(activity.job, ("",)))
            cells = map(Text, (slot, text.clean(activity.phase), candidate, " ".join(group)))
            rows.add_row(*cells, text.elapsed(now - activity.since))
        yield rows
        if hidden := Counter(_first_word(activity.phase) for _, activity in order[len(shown) :]):
            yield Text(f"and {', '.join(f'{number} {phase}' for phase, number in hidden.items())}", style="dim")


def _is_watched(console: Console) -> bool:
    """Whether somebody looks at a terminal. FORCE_COLOR makes rich call a log one, and CI systems may give jobs one."""
    by_a_system = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.is_interactive and console.file.isatty() and not by_a_system


def _counts(tally: _Tally, begun: Set[_Problem]) -> Iterator[RenderableType]:
    """The verdicts, and the problems, how many there are of each kind."""
    if tally.statuses:
        yield Text.assemble(("verdicts  ", "bold"), Text(" · ").join(styles.counts(tally.statuses)))
    if len(tally.jobs) > 1:
        problems = [f"{count} {how_far}" for how_far, count in tally.problems(begun).items()]
        yield Text.assemble(("problems  ", "bold"), " · ".join(problems))


def _builds(phase: str) -> bool:
    return phase.startswith("build")


def _first_word(phase: str) -> str:
    return phase.partition(" ")[0]


def _natural(slot: str) -> list[tuple[int, str]]:
    """A key by which slot 2 comes before slot 10."""
    parts = "".join(letter if letter.isdigit() else f" {letter} " for letter in slot).split()
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _outcome(record: Record) -> str:
    if record.status is Status.PASSED:
        return f"{text.speedup(record)}  {text.duration(record.candidate_ms)}"
    return "  ".join(text.clean(part) for part in (record.reason, record.message) if part)
