"""The loop: candidate and baseline in turn, ABBA in random order, until the stopping rule has enough."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.timing import statistics
from harness.timing.bursts import FEWEST_SINGLES
from harness.timing.stopping import Stop, StoppingRule

Side = Literal["candidate", "baseline"]
# A reading whose inputs were in place before the clock started for longer than without a candidate.
SLOW_START = "slow_start"
# A burst that was not enqueued behind the gate, although this runner had done so before.
LOST_GATE = "lost_gate"


@dataclass(frozen=True, slots=True)
class Reading:
    """One burst: microseconds a call by the judge's clock, fixed cost removed, and as the runner claims.

    NaN means no claim. `unusable` is a word if the reading must not count (`throttled`), else empty.
    """

    judge_us: float
    claimed_us: float = math.nan
    unusable: str = ""


# A burst of each side, the given one first.
MeasurePair = Callable[[Side], Mapping[Side, Reading]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The result of sampling. Entry i of the first five lists belongs to pair i; times are microseconds a call.

    `dropped` counts unusable pairs by their word. If fewer than the minimum were usable, dropped pairs that have a time
    are used after all (`taken_back` of them): both sides of a pair suffered alike, and a doubtful time with a warning
    is better than none. Pairs in which the candidate may have begun before the clock (SLOW_START) or left the gate
    (LOST_GATE), which is its own choice, are never used. The lists are empty if nothing is left. A single call counts
    with any word but SLOW_START: otherwise a candidate could have its single calls dropped, and there would be no
    evidence against it.
    """

    candidate_us: list[float]
    baseline_us: list[float]
    candidate_claimed_us: list[float]
    baseline_claimed_us: list[float]
    baseline_first: list[bool]
    candidate_single_us: list[float]
    baseline_single_us: list[float]
    stopped: Stop
    dropped: dict[str, int]
    taken_back: int
    elapsed_s: float

    @property
    def doubtful(self) -> bool:
        """Whether most pairs are of doubtful quality."""
        return 2 * self.taken_back > len(self.candidate_us)

    def speedup(self, *, systematic: float = 0.0) -> statistics.Interval:
        """See `statistics.speedup`, whose errors it raises."""
        return statistics.speedup(
            self.baseline_us, self.candidate_us, baseline_first=self.baseline_first, systematic=systematic
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    candidate: Reading
    baseline: Reading
    baseline_first: bool

    @property
    def unusable(self) -> str:
        return self.candidate.unusable or self.baseline.unusable or ("" if self.timed else "no_time")

    @property
    def takeable(self) -> bool:
        """Whether it may be used if too few pairs are usable: not if the candidate itself caused the problem."""
        return self.timed and self.candidate.unusable not in (SLOW_START, LOST_GATE)

    @property
    def timed(self) -> bool:
        return all(math.isfinite(r.judge_us) and r.judge_us > 0 for r in (self.candidate, self.baseline))


def sample(
    measure: MeasurePair,
    rule: StoppingRule,
    rng: random.Random,
    *,
    single: MeasurePair | None = None,
    between: Callable[[bool, bool], None] | None = None,
    between_singles: Callable[[], None] | None = None,
    systematic: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[float], None] | None = None,
) -> Samples:
    """Measure pairs until `rule` says stop.

    `measure` runs one burst of each side; `single`, if given, single-call bursts, behind some pairs by chance so that
    the runner cannot recognise them by their position. `between` is called before each pair, with whether the baseline
    goes first in it, and whether single calls still come; `between_singles` before these. `systematic` is the clock's
    own relative error, which no number of pairs removes. `clock` counts seconds. `tell` hears the interval's relative
    half-width whenever the rule looks at it; it is called between pairs.
    An exception from `measure` or `single` propagates.
    """
    start = clock()
    usable: list[_Pair] = []
    every: list[_Pair] = []
    singles: dict[Side, list[float]] = {"candidate": [], "baseline": []}
    orders = _orders(rng)
    baseline_first = next(orders)
    singles_due = FEWEST_SINGLES
    stop = None
    while stop is None:
        singly = single is not None and singles_due > 0
        if between is not None:
            between(baseline_first, singly)
        first: Side = "baseline" if baseline_first else "candidate"
        readings = measure(first)
        pair = _Pair(readings["candidate"], readings["baseline"], baseline_first)
        every.append(pair)
        if not pair.unusable:
            usable.append(pair)
            # A dropped pair is tried again in the same order: the kept ones stay balanced.
            baseline_first = next(orders)
            if single is not None and singles_due and rng.random() < 0.5:
                if between_singles is not None:
                    between_singles()
                both_singly(single, rng, singles)
                singles_due -= 1
        looking = not pair.unusable and len(usable) in rule.looks()
        half_width = _half_width(usable) if looking and len(usable) > 1 else None
        if tell is not None and half_width is not None:
            tell(half_width + systematic)
        stop = rule.decide(
            pairs=len(usable),
            dropped=len(every) - len(usable),
            elapsed_s=clock() - start,
            half_width=half_width,
            systematic=systematic,
        )
    dropped = Counter(pair.unusable for pair in every if pair.unusable)
    kept = usable if len(usable) >= rule.min_pairs else [pair for pair in every if pair.takeable]
    return Samples(
        candidate_us=[pair.candidate.judge_us for pair in kept],
        baseline_us=[pair.baseline.judge_us for pair in kept],
        candidate_claimed_us=[pair.candidate.claimed_us for pair in kept],
        baseline_claimed_us=[pair.baseline.claimed_us for pair in kept],
        baseline_first=[pair.baseline_first for pair in kept],
        candidate_single_us=singles["candidate"],
        baseline_single_us=singles["baseline"],
        stopped=stop,
        dropped=dict(dropped),
        taken_back=len(kept) - len(usable),
        elapsed_s=clock() - start,
    )


def _orders(rng: random.Random) -> Iterator[bool]:
    """Whether the baseline goes first: ABBA or BAAB at random, so each order comes once a block of two pairs."""
    while True:
        first = rng.random() < 0.5
        yield first
        yield not first


def both_singly(single: MeasurePair, rng: random.Random, singles: dict[Side, list[float]]) -> None:
    """One single-call burst of each side, in random order, into `singles` as far as they are times."""
    for side, reading in single(rng.choice(("candidate", "baseline"))).items():
        if reading.unusable != SLOW_START and math.isfinite(reading.judge_us) and reading.judge_us > 0:
            singles[side].append(reading.judge_us)


def _half_width(pairs: list[_Pair]) -> float:
    return statistics.speedup(
        [pair.baseline.judge_us for pair in pairs],
        [pair.candidate.judge_us for pair in pairs],
        baseline_first=[pair.baseline_first for pair in pairs],
    ).half_width
