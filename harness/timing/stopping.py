"""When to stop: precise enough, out of budget, or out of pairs; never before the minimum."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from harness.timing.statistics import FEWEST

# Looks at the interval are this far apart (ratio of pair counts). Each look is one more chance to stop at an interval
# that is narrow by luck; looks further apart measure longer than needed. The interval is widened to bear these looks.
LOOK_RATIO = 1.2
# Fewer pairs than this say too little about their own spread to stop on.
EARLIEST_LOOK = 6


class Stop(enum.StrEnum):
    """Why sampling ended."""

    PRECISE = "precise"
    # The clock's own error dominates what is left: more pairs would not make the interval narrow.
    RESOLUTION = "resolution"
    BUDGET = "budget"
    MAX_PAIRS = "max_pairs"
    # Most pairs had to be dropped (a throttled card, say), and the minimum was never reached.
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Stop when the interval's half-width is under `precision` (relative) or `budget_s` seconds are spent.

    Raises ValueError where a bound is not positive, the minimum below two or the maximum below the minimum.
    """

    precision: float
    budget_s: float
    min_pairs: int
    max_pairs: int

    def __post_init__(self) -> None:
        if self.precision <= 0 or self.budget_s <= 0:
            raise ValueError("precision and budget_s must be positive")
        if self.min_pairs < FEWEST:
            raise ValueError(f"an interval needs {FEWEST} pairs, so min_pairs cannot be {self.min_pairs}")
        if self.max_pairs < self.min_pairs:
            raise ValueError(f"max_pairs ({self.max_pairs}) is below min_pairs ({self.min_pairs})")

    def looks(self) -> tuple[int, ...]:
        """The pair counts at which the interval may end the sampling: geometric, and even, so that orders balance."""
        counts = []
        count = _even(max(self.min_pairs, EARLIEST_LOOK))
        while count < self.max_pairs:
            counts.append(count)
            count = _even(math.ceil(count * LOOK_RATIO))
        return (*counts, self.max_pairs)

    def decide(
        self,
        *,
        pairs: int,
        dropped: int,
        elapsed_s: float,
        half_width: float | None,
        systematic: float = 0.0,
    ) -> Stop | None:
        """Why to stop now, or None to go on.

        `half_width` is that of the interval without the clock's own error, `systematic`; only `looks` need it, and
        elsewhere it is not regarded. `dropped` pairs are not among `pairs`.
        """
        exhausted = pairs + dropped >= 2 * self.max_pairs
        if pairs < self.min_pairs:
            wasted = elapsed_s >= self.budget_s and dropped > max(pairs, self.min_pairs)
            return Stop.UNUSABLE if exhausted or wasted else None
        if half_width is not None and pairs in self.looks():
            if half_width + systematic < self.precision:
                return Stop.PRECISE
            if half_width < systematic / 2:
                return Stop.RESOLUTION
        if pairs >= self.max_pairs or exhausted:
            return Stop.MAX_PAIRS
        return Stop.BUDGET if elapsed_s >= self.budget_s else None


def _even(count: int) -> int:
    return count + count % 2
