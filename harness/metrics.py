"""Figures of merit over many speedups: pure arithmetic, standard library only.

A speedup is baseline time over candidate time, without unit. Wrong arguments raise ValueError.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.errors import BadValue


def geomean(values: Sequence[float]) -> float:
    """Geometric mean: the only mean under which a speedup of 2 and one of 1/2 cancel out."""
    if not values:
        raise BadValue("the geometric mean of nothing is undefined")
    for value in values:
        _require_positive("value", value)
    return statistics.geometric_mean(values)


def fast_p(best: Sequence[float | None], p: float = 1.0) -> float:
    """Share, 0 to 1, of problems that have a passed candidate strictly faster than `p` times the baseline.

    `best` holds one entry a problem: the best speedup among its passed candidates, None where none passed. So the
    score counts wrong and slow alike as failures (Ouyang et al., KernelBench, 2025, arXiv:2502.10517).
    """
    if not best:
        raise BadValue("fast_p needs at least one problem")
    if not (math.isfinite(p) and p >= 0):
        raise BadValue(f"p must be finite and not negative, not {p}")
    for value in best:
        if value is not None:
            _require_positive("speedup", value)
    return sum(value is not None and value > p for value in best) / len(best)


def at_k(samples: int, good: int, k: int) -> float:
    """Chance, 0 to 1, that one or more of `k` samples are good, where `good` of `samples` are: pass@k, and fast_p@k.

    The unbiased estimator 1 - C(samples - good, k) / C(samples, k) of Chen et al., Evaluating Large Language Models
    Trained on Code, 2021, arXiv:2107.03374. It takes samples to be drawn independently, and needs `k` of them.
    """
    if not 0 <= good <= samples or not 1 <= k <= samples:
        raise BadValue(f"at_k needs 0 <= good <= samples and 1 <= k <= samples, not {good}, {samples} and k = {k}")
    return 1 - math.comb(samples - good, k) / math.comb(samples, k)


def ranks(intervals: Sequence[tuple[float, float, float]]) -> list[int]:
    """The rank of each `(speedup, lo, hi)`, in the order given; 1 is best, ties share a rank.

    Going down from the highest speedup, a candidate shares the current rank as long as its interval overlaps (or
    touches) that of the rank's first, and opens the next rank only where its interval is wholly below it. Ranks are
    standard competition ranks ("1 1 3"): one more than the number of candidates in better ranks.

    Overlap is not transitive, so no ranking can honour every overlap. Comparing with the rank's first keeps a chain of
    pairwise overlaps from tying the fastest with the slowest, at a price: two neighbours that overlap may be split
    where only the upper one overlaps the first.
    """
    for speedup, lo, hi in intervals:
        for name, value in (("speedup", speedup), ("lo", lo), ("hi", hi)):
            _require_positive(name, value)
        if lo > hi:
            raise BadValue(f"an interval's lower end must not be above its upper end: [{lo}, {hi}]")
    # Equal speedups are ordered by their intervals, so that the result does not depend on the order given.
    order = sorted(range(len(intervals)), key=lambda index: intervals[index], reverse=True)
    result = [0] * len(intervals)
    rank, first_lo = 0, math.inf
    for position, index in enumerate(order, start=1):
        _, lo, hi = intervals[index]
        if hi < first_lo:
            rank, first_lo = position, lo
        result[index] = rank
    return result


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BadValue(f"a {name} must be finite and above 0, not {value}")
