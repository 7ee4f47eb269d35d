"""Two runs side by side: how each candidate changed from run A to run B. Pure; `compare_table` shows it."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import metrics
from harness.config import SECTIONS
from harness.errors import UsageError, nearest
from harness.records import Record, Status
from harness.reports import text
from harness.reports.facts import VERSIONS
from harness.timing import verdicts
from harness.timing.statistics import Interval


class ChangeKind(enum.StrEnum):
    """How a candidate changed, in the order of a report: what needs attention comes first."""

    BROKEN = "broken"
    SLOWER = "slower"
    MISSING = "missing"
    FIXED = "fixed"
    FASTER = "faster"
    NEW = "new"
    # Passed in neither run, with different statuses.
    CHANGED = "changed"
    # Passed in both, on different devices, or over different baselines.
    NOT_COMPARED = "not compared"
    CANT_TELL = "can't tell"
    SAME = "same"
    # Passed in neither run, with the same status.
    STILL_FAILS = "still fails"


ORDER = list(ChangeKind)

# The words that `--fail-on` accepts.
FAIL_ON = {
    change.replace(" ", "-"): change
    for change in (ChangeKind.SLOWER, ChangeKind.BROKEN, ChangeKind.MISSING, ChangeKind.NOT_COMPARED)
}

# What two speedups must have in common to be compared. For the clock: gated times exclude launch latency, ungated ones
# include it on both sides, so the speedups differ.
TRAITS: dict[str, Callable[[Record], str]] = {
    "device": lambda record: record.device,
    "baseline": lambda record: record.baseline,
    "clock": lambda record: record.timing.clock if record.timing else "",
}

# Settings that may influence verdicts and times.
SETTINGS = ("allow", *(name for name in SECTIONS if name != "packs"))
# Those of them that cannot, and those that decide when sampling stops, whose effect the intervals show.
NO_MATTER = {"build.slots", "compile.cache_gb", "compile.cache_dir", "check.kernelbench"}
NO_MATTER |= {"timing.precision", "timing.budget_s", "timing.min_pairs", "timing.max_pairs"}


@dataclass(frozen=True)
class Row:
    """One candidate at one variant and precision; `a` or `b` is None if that run lacks it.

    `ratio` is B's speedup over A's (above 1: B is faster), None unless the two were compared. `obstacle` is the
    one of `TRAITS` that differs, so that speedups are not compared; empty if none does.
    """

    change: ChangeKind
    a: Record | None
    b: Record | None
    ratio: Interval | None = None
    obstacle: str = ""

    @property
    def either(self) -> Record:
        """The record that names the row: A's, or B's if A has none."""
        record = self.a or self.b
        assert record is not None
        return record

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Problem, variant, precision and device (A's): rows of one table."""
        record = self.either
        return record.problem, record.variant, record.precision, record.device


def rows(a: Iterable[Record], b: Iterable[Record]) -> list[Row]:
    """Match records by problem, variant, precision and candidate's name, whether or not its source changed.

    Sorted by problem, variant, precision and device; within these by change, then by name.
    """
    before, after = _by_name(a), _by_name(b)
    names = before.keys() | after.keys()
    found = [_row(*pair) for name in names for pair in _pairs(before.get(name, {}), after.get(name, {}))]
    return sorted(found, key=_place)


def counts(found: Iterable[Row]) -> dict[ChangeKind, int]:
    """How many rows there are of each change that occurs, in the order of `ChangeKind`."""
    counted = Counter(row.change for row in found)
    return {change: counted[change] for change in ORDER if counted[change]}


def failing(found: Iterable[Row], words: Iterable[str]) -> dict[ChangeKind, int]:
    """The rows that `--fail-on` forbids, counted by change. Raises UsageError for a word that is not in `FAIL_ON`."""
    forbidden = set()
    for word in words:
        if word not in FAIL_ON:
            raise UsageError(f"--fail-on {word}: {nearest(word, FAIL_ON)}")
        forbidden.add(FAIL_ON[word])
    return {change: number for change, number in counts(found).items() if change in forbidden}


def summary(found: Sequence[Row]) -> str:
    """One sentence or two about all rows."""
    if not found:
        return "Neither run has a record."
    ratios = [row.ratio.value for row in found if row.ratio]
    mean = f" B's speedup over A's: geomean {metrics.geomean(ratios):.3f}x of {len(ratios)} compared." if ratios else ""
    return f"{_candidates(len(found))}: {listed(counts(found))}.{mean}"


def listed(counted: Mapping[ChangeKind, int]) -> str:
    """`1 broken, 2 slower`."""
    return ", ".join(f"{number} {change}" for change, number in counted.items())


def notes(found: Sequence[Row], a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What a reader must know before trusting a change; `a` and `b` are the manifests, every key optional."""
    unlike = Counter((row.obstacle, _trait(row.a, row.obstacle), _trait(row.b, row.obstacle)) for row in found)
    said = [
        f"{obstacle} {one} in A, {other} in B ({_candidates(number)}): speedups are not compared"
        for (obstacle, one, other), number in sorted(unlike.items())
        if obstacle
    ]
    versions = _differences(_part(a, "environment"), _part(b, "environment"), VERSIONS)
    if versions:
        said.append(f"{versions}: the baseline may have changed, and every speedup with it")
    one, other = _settings(a), _settings(b)
    settings = _differences(one, other, one)
    if settings:
        said.append(f"{settings}: evaluated with different settings")
    return said


def _by_name(records: Iterable[Record]) -> dict[tuple[str, str, str, str], dict[str, Record]]:
    found: dict[tuple[str, str, str, str], dict[str, Record]] = {}
    for record in records:
        name = (record.problem, record.variant, record.precision, record.candidate)
        found.setdefault(name, {})[record.device] = record
    return found


def _pairs(a: dict[str, Record], b: dict[str, Record]) -> list[tuple[Record | None, Record | None]]:
    """Pairs of a candidate's records: those of equal devices first, then the remaining ones of both runs in order."""
    shared = [(a[device], b[device]) for device in sorted(a.keys() & b.keys())]
    only_a = [a[device] for device in sorted(a.keys() - b.keys())]
    only_b = [b[device] for device in sorted(b.keys() - a.keys())]
    return [*shared, *itertools.zip_longest(only_a, only_b)]


def _row(a: Record | None, b: Record | None) -> Row:
    if a is None or b is None:
        return Row(ChangeKind.NEW if a is None else ChangeKind.MISSING, a, b)
    obstacle = _obstacle(a, b)
    before, after = _interval(a), _interval(b)
    if before and after:
        if obstacle:
            return Row(ChangeKind.NOT_COMPARED, a, b, obstacle=obstacle)
        found = verdicts.compare(before, after)
        return Row(ChangeKind(found.verdict.value), a, b, ratio=found.ratio)
    return Row(_change(a.status, b.status), a, b, obstacle=obstacle)


def _change(a: Status, b: Status) -> ChangeKind:
    if a is b:
        return ChangeKind.STILL_FAILS
    if a is Status.PASSED:
        return ChangeKind.BROKEN
    return ChangeKind.FIXED if b is Status.PASSED else ChangeKind.CHANGED


def _interval(record: Record) -> Interval | None:
    # A passed record has all three.
    if record.speedup is None or record.speedup_lo is None or record.speedup_hi is None:
        return None
    return Interval(record.speedup, record.speedup_lo, record.speedup_hi)


def _obstacle(a: Record, b: Record) -> str:
    for name in TRAITS:
        one, other = _trait(a, name), _trait(b, name)
        if one and other and one != other:
            return name
    return ""


def _trait(record: Record | None, name: str) -> str:
    return text.clean(TRAITS[name](record)) if record and name else ""


def _place(row: Row) -> tuple[str, str, str, str, int, str]:
    return *row.group, ORDER.index(row.change), row.either.candidate


def _candidates(number: int) -> str:
    return f"{number} {'candidate' if number == 1 else 'candidates'}"


def _part(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}


def _settings(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """`SETTINGS` of the run's config by dotted name, without those that do not matter."""
    config = _part(manifest, "config")
    found = {name: config[name] for name in SETTINGS if name in config}
    flat = {name: value for name, value in found.items() if not isinstance(value, Mapping)}
    flat |= {f"{name}.{key}": value for name in found for key, value in _part(config, name).items()}
    return {name: value for name, value in flat.items() if name not in NO_MATTER}


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], keys: Iterable[str]) -> str:
    """`torch 2.10 in A, 2.11 in B; ...` for the keys that both have with different values."""
    unlike = [key for key in keys if key in a and key in b and a[key] != b[key]]
    return "; ".join(f"{key} {_plain(a[key])} in A, {_plain(b[key])} in B" for key in unlike)


def _plain(value: Any) -> str:
    words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.clean(words) or "none"
