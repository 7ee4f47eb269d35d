"""Two measurements of one thing, in two runs: faster, slower, the same, or can't tell."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from harness.timing.statistics import Interval

# Differences within this (relative) are nobody's business.
SAME = 0.01
# What differs from one run to the next and no interval within a run can see (where pages landed, how warm the card
# was): speedups of copies of the reference against it spread by 0.02 to 0.13 % from 50 us on (st.dev.,
# results/precision-h200/table.txt, by benchmarks/precision.py).
BETWEEN_RUNS = 0.003


class Standing(enum.StrEnum):
    """How the second measurement stands to the first."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    CANT_TELL = "can't tell"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict, and second over first (above 1: the second is faster) with its 95 % interval."""

    verdict: Standing
    ratio: Interval


def compare(first: Interval, second: Interval) -> Comparison:
    """Compare two independent intervals of a speedup (larger is faster).

    The ratio's interval combines the distances from value to end of both on the log scale, and BETWEEN_RUNS, as root
    of the sum of squares (MOVER: Zou and Donner 2008). The rule, in this order: `same` where the whole interval lies
    within 1/(1+SAME) .. 1+SAME (two one-sided tests: Schuirmann 1987); `faster` or `slower` where all of it lies on one
    side of 1; else `can't tell`. Speedups rather than times: the shared baseline cancels the card's state.
    """
    (one_lo, one, one_hi), (lo, value, hi) = first.logs, second.logs
    below = math.hypot(value - lo, one_hi - one, BETWEEN_RUNS)
    above = math.hypot(hi - value, one - one_lo, BETWEEN_RUNS)
    ratio = value - one
    interval = Interval.of_logs(ratio - below, ratio, ratio + above)
    if interval.lo >= 1 / (1 + SAME) and interval.hi <= 1 + SAME:
        return Comparison(Standing.SAME, interval)
    if interval.lo > 1:
        return Comparison(Standing.FASTER, interval)
    if interval.hi < 1:
        return Comparison(Standing.SLOWER, interval)
    return Comparison(Standing.CANT_TELL, interval)
