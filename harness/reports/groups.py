"""Records in the order and grouping of every report: one ranked group per problem, and a summary of all."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Sequence

from harness import metrics
from harness.records import Record, Status

# Their order in the enumeration is that of every report.
STATUSES = list(Status)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A record with its rank within its group; only passed records have one."""

    rank: int | None
    record: Record


@dataclasses.dataclass(frozen=True)
class Group:
    """All candidates of one problem at one variant and precision, best first.

    Speedups over different baselines cannot be ranked together, so a second baseline makes a second group.
    `baseline_ms` is the median over the group's records, None if no baseline was timed.
    """

    problem: str
    variant: str
    precision: str
    baseline: str
    baseline_ms: float | None
    entries: list[Entry]

    @property
    def best(self) -> Record | None:
        """The fastest passed record."""
        first = self.entries[0]
        return first.record if first.rank is not None else None


@dataclasses.dataclass(frozen=True)
class Summary:
    """Figures over all groups; each group counts as one problem.

    `faster` have a passed candidate above 1x, which `fast_1` is the share of; `surely` one whose whole interval is.
    """

    statuses: dict[Status, int]
    problems: int
    solved: int
    geomean: float | None
    fast_1: float
    faster: int
    surely: int


def grouped(records: Sequence[Record]) -> list[Group]:
    """By problem, variant and precision; within a group the passed by falling speedup, the rest by status and name."""
    ordered = sorted(records, key=lambda record: (_group_key(record), _standing(record)))
    return [_group(key, list(members)) for key, members in itertools.groupby(ordered, key=_group_key)]


def summarise(groups: Sequence[Group]) -> Summary | None:
    """None if there are no groups."""
    if not groups:
        return None
    found = [entry.record.status for group in groups for entry in group.entries]
    best = [group.best.speedup if group.best else None for group in groups]
    lowest = [max((entry.record.speedup_lo or 0.0 for entry in group.entries), default=0.0) for group in groups]
    solved = [speedup for speedup in best if speedup is not None]
    return Summary(
        statuses={status: found.count(status) for status in STATUSES if status in found},
        problems=len(best),
        solved=len(solved),
        geomean=metrics.geomean(solved) if solved else None,
        fast_1=metrics.fast_p(best),
        faster=sum(speedup > 1 for speedup in solved),
        surely=sum(low > 1 for low in lowest),
    )


def _group_key(record: Record) -> tuple[str, str, str, str]:
    return record.problem, record.variant, record.precision, record.baseline


def _standing(record: Record) -> tuple[int, float, str]:
    # Status lists `passed` first.
    return STATUSES.index(record.status), -(record.speedup or 0.0), record.candidate


def _group(key: tuple[str, str, str, str], records: list[Record]) -> Group:
    timed = [record.baseline_ms for record in records if record.baseline_ms is not None]
    # The None checks are for the type checker: a passed record has its interval.
    intervals = [
        (record.speedup, record.speedup_lo, record.speedup_hi)
        for record in records
        if record.speedup is not None and record.speedup_lo is not None and record.speedup_hi is not None
    ]
    places: list[int | None] = [*metrics.ranks(intervals), *[None] * (len(records) - len(intervals))]
    entries = [Entry(rank, record) for rank, record in zip(places, records, strict=True)]
    return Group(*key, baseline_ms=statistics.median(timed) if timed else None, entries=entries)
