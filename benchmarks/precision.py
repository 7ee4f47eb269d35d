"""How far apart are two timings of the same thing? A/A pairs (candidates that are copies of the reference) and A/B
pairs (copies that do 1 % more work) through the harness itself, over kernels of about 5 us to 5 ms.

    python benchmarks/precision.py [--device cuda:0] [--repeats 10] [--sizes 5us,50us,500us,5ms] [--busy 2] [--out DIR]

A kernel is relu over float32 numbers: one pass, or several in place where a single one would take too much memory. B
is A with one more pass over as many numbers as 1 % of all passes has, on its own output, which stays the same. Each
copy is a process of its own; the baseline's process is the same for all copies of a size. B exists from 500 us up:
below, launching the small pass takes longer than the pass.

Columns: the median time; the median speedup; the standard deviation of log(speedup) between the runs, and half its
range; how many intervals contain 1; their mean half-width; the median number of pairs; the most frequent reason to
stop; the mean seconds a candidate, checks and process start included; and in how many runs B was told from A (the
whole interval below 1). The work of a size is fixed, so that runs are comparable: it was chosen for an H200, and for
one core of a server. On the CPU kernels use one thread, unless OMP_NUM_THREADS says otherwise: on a busy machine
threads wait for each other longer than they compute. There, two copies of A in one plain process are timed as well,
with as many calls and pairs: no clock from outside can do better than these differ. `--busy` adds loops that do nothing
else.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import _made_up as made_up
from _made_up import Problem

from harness import environment
from harness.config import TimingConfig
from harness.errors import UsageError
from harness.records import Record

COLUMNS = 1024
# By kind of device and size: rows of 1024 numbers, and passes over them.
WORK = {
    "cuda": {"5us": (1024, 1), "50us": (24576, 1), "500us": (32768, 7), "5ms": (131072, 18)},
    "cpu": {"5us": (8, 1), "50us": (80, 1), "500us": (256, 19), "5ms": (2048, 14)},
}
US = {"5us": 5, "50us": 50, "500us": 500, "5ms": 5000}
DEFAULT_SIZES = {"cuda": ("5us", "50us", "500us", "5ms"), "cpu": ("50us", "500us", "5ms")}
# From here up a pass over 1 % of the data takes about 1 % of the time, and the spread counts for the last line.
COMPARABLE_US = 500
COUNTED_US = 50

LAST_LINE = """\
last line: aa_spread_pct=X coverage=Y
  X  the largest standard deviation of log(speedup) between A/A runs of one size, in %, over the sizes from 50 us up
  Y  the share of all A/A intervals, of every size, that contain 1
The exit status is 0 whatever the figures are, 1 if nothing could be timed, 2 for wrong arguments.
"""


@dataclass(frozen=True)
class Group:
    """The timed runs of one size, all A/A or all A/B."""

    size: str
    more_work: bool
    records: list[Record]

    @property
    def logs(self) -> list[float]:
        return [math.log(record.speedup or math.nan) for record in self.records]

    @property
    def spread_pct(self) -> float:
        """Standard deviation between runs, NaN for a single one."""
        return 100 * statistics.stdev(self.logs) if len(self.records) > 1 else math.nan

    @property
    def half_range_pct(self) -> float:
        return 50 * (max(self.logs) - min(self.logs))

    @property
    def covering(self) -> int:
        """How many intervals contain 1."""
        return sum(low <= 1 <= high for low, high in map(interval, self.records))

    @property
    def told_apart(self) -> int:
        """How many intervals say that the candidate is slower."""
        return sum(high < 1 for _, high in map(interval, self.records))

    @property
    def half_width_pct(self) -> float:
        return statistics.mean(50 * math.log(high / low) for low, high in map(interval, self.records))


def interval(record: Record) -> tuple[float, float]:
    return record.speedup_lo or math.nan, record.speedup_hi or math.nan


def main() -> int:
    arguments = parse()
    started = time.monotonic()
    try:
        device = environment.choose_devices(arguments.device)[0]
        sizes = arguments.sizes.split(",") if arguments.sizes else list(DEFAULT_SIZES[device.kind])
        problems = [problem(size, device.kind, arguments.repeats) for size in sizes]
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if device.kind == "cpu":
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    timing = TimingConfig(precision=arguments.precision, budget_s=arguments.budget)
    print(
        f"{device.name}, precision {timing.precision:.1%}, at most {timing.budget_s:g} s of sampling a candidate",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="assay-precision-") as folder:
        root = Path(folder)
        made_up.write(problems, root)
        out = arguments.out or root / "run"
        with busy_loops(arguments.busy):
            records = made_up.run(
                root, out, device.spec, timing, deadline=started + arguments.within, lanes=arguments.lanes
            )
            found = groups(records, sizes)
            if device.kind == "cpu":
                print_plain(found, root)
    return report(found, records, sum(len(item.candidates) for item in problems))


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many other programs that keep a core busy each."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def print_plain(found: Sequence[Group], root: Path) -> None:
    """What two copies in one process show, beside what the harness shows of two processes."""
    rows = []
    for group in found:
        if group.more_work:
            continue
        timings = [record.timing for record in group.records if record.timing]
        calls = round(statistics.median(timing.calls_per_burst for timing in timings))
        pairs = round(statistics.median(len(timing.candidate_us) for timing in timings))
        seen = [plain(root / "problems" / made_up.SET / f"{group.size}.py", calls, pairs) for _ in group.records]
        logs = [math.log(speedup) for speedup, _ in seen]
        spread_pct = 100 * statistics.stdev(logs) if len(logs) > 1 else math.nan
        bias_pct = 100 * (math.exp(statistics.mean(group.logs)) - 1)
        rows.append(
            [
                group.size,
                duration(statistics.median(us for _, us in seen)),
                f"{spread_pct:.2f} %",
                f"{group.spread_pct:.2f} %",
                f"{group.spread_pct / spread_pct:.2f}",
                f"{bias_pct:+.2f} %",
            ]
        )
    made_up.print_table(["size", "plain time", "plain st.dev.", "st.dev.", "ratio", "bias"], rows)


def plain(source: Path, calls: int, pairs: int) -> tuple[float, float]:
    """Speedup and microseconds a call of two copies in one process."""
    words = [sys.executable, str(Path(__file__).with_name("_plain.py")), str(source), str(calls), str(pairs)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    output = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    speedup, us = map(float, output.split())
    return speedup, us


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=LAST_LINE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N; auto is the first card, if there is one")
    parser.add_argument("--repeats", type=int, default=10, help="copies of A, and of B, for each size (10)")
    parser.add_argument("--sizes", help=f"some of {','.join(US)}; by default all, without 5us on the CPU")
    parser.add_argument("--out", type=Path, help="where to keep the run's records (default: nowhere)")
    parser.add_argument(
        "--precision", type=float, default=0.005, help="timing.precision (0.005, as the harness has it)"
    )
    parser.add_argument("--budget", type=float, default=5.0, help="timing.budget_s (5, half the harness's default)")
    parser.add_argument("--lanes", type=int, default=1, help="candidates under way at a time on each GPU (1)")
    parser.add_argument("--busy", type=int, default=0, help="busy loops beside it (0)")
    parser.add_argument("--within", type=float, default=225.0, help="begin no candidate after so many seconds (225)")
    return parser.parse_args()


def problem(size: str, kind: str, repeats: int) -> Problem:
    """One size's reference, and its copies in turn with and without the additional pass."""
    if size not in US:
        raise UsageError(f"unknown size '{size}'; valid: {', '.join(US)}")
    if repeats < 1:
        raise UsageError("--repeats must be at least 1")
    rows, passes = WORK[kind][size]
    a = forward(passes)
    b = forward(passes, more=f"torch.relu_(y[:{rows * passes // 100}])")
    candidates = {}
    for number in range(repeats):
        candidates[f"{number:03}_aa"] = candidate(a, rows)
        if US[size] >= COMPARABLE_US:
            candidates[f"{number:03}_ab"] = candidate(b, rows)
    return Problem(name=size, source=made_up.source(a, [f"{rows}, {COLUMNS}"]), candidates=candidates)


def forward(passes: int, more: str = "") -> str:
    """The method's body: `passes` times relu, and `more`."""
    again = f"for _ in range({passes - 1}):\n    torch.relu_(y)" if passes > 1 else ""
    return "\n".join(line for line in ("y = torch.relu(a)", again, more, "return y") if line)


def candidate(body: str, rows: int) -> str:
    return made_up.source(body, [f"{rows}, {COLUMNS}"], entry="ModelNew")


def groups(records: Sequence[Record], sizes: Sequence[str]) -> list[Group]:
    """Timed records by size and kind; groups without any are left out."""
    found = []
    for size in sizes:
        for more_work, suffix in ((False, "_aa"), (True, "_ab")):
            named = [record for record in records if record.problem == f"{made_up.SET}/{size}"]
            timed = [record for record in named if record.candidate.endswith(suffix) and record.timing is not None]
            if timed:
                found.append(Group(size, more_work, timed))
    return found


def report(found: Sequence[Group], records: Sequence[Record], planned: int) -> int:
    """Print the table, what went wrong, and the last line; returns the exit status."""
    titles = [
        "size",
        "runs",
        "time",
        "speedup",
        "st.dev.",
        "range/2",
        "has 1",
        "half-width",
        "pairs",
        "ended",
        "s each",
    ]
    made_up.print_table([*titles, "told apart"], [row(group) for group in found])
    made_up.print_failures(records)
    if len(records) < planned:
        print(f"out of time: {planned - len(records)} of {planned} runs were not begun or not finished (--within)")
    same = [group for group in found if not group.more_work]
    intervals = sum(len(group.records) for group in same)
    spreads = [group.spread_pct for group in same if US[group.size] >= COUNTED_US]
    spread = max((value for value in spreads if not math.isnan(value)), default=math.nan)
    coverage = sum(group.covering for group in same) / intervals if intervals else math.nan
    print(f"aa_spread_pct={spread:.3f} coverage={coverage:.3f}")
    return 0 if intervals else 1


def row(group: Group) -> list[str]:
    count = len(group.records)
    timings = [record.timing for record in group.records if record.timing]
    return [
        f"{group.size} {'A/B' if group.more_work else 'A/A'}",
        str(count),
        duration(statistics.median(record.candidate_ms or math.nan for record in group.records) * 1e3),
        f"{math.exp(statistics.median(group.logs)):.4f}",
        "-" if math.isnan(group.spread_pct) else f"{group.spread_pct:.2f} %",
        f"{group.half_range_pct:.2f} %",
        f"{group.covering}/{count}",
        f"{group.half_width_pct:.2f} %",
        f"{statistics.median(len(timing.candidate_us) for timing in timings):g}",
        statistics.mode(timing.stopped for timing in timings),
        f"{statistics.mean(record.wall_s or math.nan for record in group.records):.1f}",
        f"{group.told_apart}/{count}" if group.more_work else "-",
    ]


def duration(microseconds: float) -> str:
    return f"{microseconds:.2f} us" if microseconds < 1000 else f"{microseconds / 1000:.3f} ms"


if __name__ == "__main__":
    sys.exit(main())
