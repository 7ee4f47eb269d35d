"""How long inputs are in place before a runner's clock starts, and when that is too long.

On a card the judge writes the inputs and then the clock's start with nothing in between but a write over the cache.
Only where the card gives another process its turn in between, because that has work to do, is the way longer: then a
runner may have seen its inputs, and begun, before the clock did. On the CPU a runner has a turn to understand what is
to come; what it does there beyond that, it does for its answer.
"""

from __future__ import annotations

import bisect

from harness.timing import statistics

# Beyond what was seen without a candidate. A turn of another process takes at least two switches of the card, as an
# empty burst does (308 us on an H200, benchmarks/card_clock.py), so that this is too little for one with work in it.
SLACK_US = 100.0
SLACK_SHARE = 0.05
# Of what bursts of one length differed by; the few beyond were disturbed.
QUANTILE = 0.9
# Ways of one length, below which a disturbed one could be their median.
FEWEST = 5


class StartWatch:
    """Ways of bursts of a trusted runner, and whether another one is longer than these explain."""

    def __init__(self) -> None:
        self._seen_us: dict[int, list[float]] = {}

    def learn(self, calls: int, way_us: float) -> None:
        """A way with a burst of so many calls and no candidate about."""
        self._seen_us.setdefault(calls, []).append(way_us)

    def _points(self, usual_us: dict[int, float]) -> dict[int, float]:
        """The lengths to go by: the shortest, the longest, and those between that were seen often enough."""
        ends = min(usual_us), max(usual_us)
        return {calls: us for calls, us in usual_us.items() if calls in ends or len(self._seen_us[calls]) >= FEWEST}

    def slow(self, calls: int, way_us: float) -> bool:
        """Whether a way is clearly longer than without a candidate; never, where nothing was learnt."""
        if not self._seen_us:
            return False
        usual_us = self._usual_us
        beyond_us = sorted(us - usual_us[known] for known, seen in self._seen_us.items() for us in seen)
        spread_us = beyond_us[int(QUANTILE * len(beyond_us))]
        return self.beyond_us(calls, way_us) > self._expected_us(calls) * SLACK_SHARE + 2 * spread_us + SLACK_US

    def beyond_us(self, calls: int, way_us: float) -> float:
        """By how much a way is longer than a trusted runner's median; 0 where nothing was learnt.

        Without tolerance, which a candidate could use; the caller applies it to both sides alike.
        """
        return max(0.0, way_us - self._expected_us(calls)) if self._seen_us else 0.0

    @property
    def _usual_us(self) -> dict[int, float]:
        return {known: statistics.median(seen) for known, seen in self._seen_us.items()}

    def _expected_us(self, calls: int) -> float:
        return _between(self._points(self._usual_us), calls)


def _between(points: dict[int, float], at: int) -> float:
    """The value at `at` on the straight lines from each point to the next: a first call's share, and that of more.

    Not on one line from the first to the last: the way of one call is far from that of none and a bit.
    """
    known = sorted(points)
    if len(known) == 1:
        return points[known[0]]
    above = min(max(bisect.bisect_left(known, at), 1), len(known) - 1)
    first, last = known[above - 1], known[above]
    slope = max(0.0, (points[last] - points[first]) / (last - first))
    return points[first] + slope * (at - first)
