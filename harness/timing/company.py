"""Is the baseline slower in a candidate's company than alone? A candidate gains by slowing what it is compared with.

A candidate that loads the machine cannot be told for sure from a machine that others load. So nobody is rejected: the
baseline's time alone is the one that counts, and the record says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Of the time alone, what may come of clocks and neighbours. What is beyond is not credited: the baseline is asked again
# when the candidate is gone, and only where it is as slow then was it not the candidate.
TOLERATED = 1.05
FEWEST = 5


@dataclass(frozen=True)
class Usual:
    """Microseconds a call of a side: in bursts of one, and in bursts of several, where there are such."""

    single_us: list[float]
    burst_us: list[float]

    def a_call(self, calls: int) -> list[float]:
        """Microseconds a call in bursts of so many; what a first call takes longer is shared among them."""
        if calls == 1 or not (self.single_us and self.burst_us):
            return self.single_us
        beyond_us = max(0.0, statistics.median(self.single_us) - statistics.median(self.burst_us))
        return [value + beyond_us / calls for value in self.burst_us]

    def slower(self, later: Usual) -> bool:
        """Whether `later` is, in the longest bursts there are."""
        before, now = (usual.burst_us or usual.single_us for usual in (self, later))
        return slow_baseline(before, now, slack_us=0.0) is not None


@dataclass(frozen=True)
class Alone:
    """The baseline's times while no candidate is there, behind the gate and without it.

    A candidate that waits for the device by itself cannot be timed behind the gate, and then neither is the baseline:
    its times beside that one have the host's launch latency in them.
    """

    gated: Usual = Usual([], [])
    ungated: Usual = Usual([], [])

    def slower(self, later: Alone) -> bool:
        """Whether it has become slower until `later`, of itself."""
        return self.gated.slower(later.gated) or self.ungated.slower(later.ungated)


def slow_baseline(alone_us: Sequence[float], together_us: Sequence[float], *, slack_us: float) -> Suspicion | None:
    """Evidence that the baseline takes longer, in microseconds a call, while the candidate's process is there.

    Both in bursts of as many calls. `slack_us` is granted beside TOLERATED and the intervals of both medians. The
    evidence's `factor` is by how much the baseline's times together have to be multiplied to be what they are alone.
    None with fewer than five readings.
    """
    if len(alone_us) < FEWEST or len(together_us) < FEWEST:
        return None
    alone, together = statistics.time_us(alone_us), statistics.time_us(together_us)
    if together.lo <= TOLERATED * alone.hi + slack_us:
        return None
    return Suspicion(
        "slow_baseline",
        f"the baseline takes {together.value:.1f} us beside this candidate and {alone.value:.1f} us alone; "
        "the speedup is over its time alone",
        {"alone_us": alone.value, "together_us": together.value, "factor": alone.value / together.value},
    )


def own_wait(
    gated_us: Sequence[float], together_us: Sequence[float], candidate_us: Sequence[float]
) -> Suspicion | None:
    """What is not credited to a candidate that waits for the device by itself, and so takes the gate from both sides.

    Without the gate the host's launches are in the baseline's time, `together_us`, and whoever waits on purpose would
    choose the clock that suits it. Behind the gate the baseline takes `gated_us`. All in microseconds a call. A speedup
    over that time is sure; of one that is over the launches only, 1 is left, and a slowdown stays what it is. The
    evidence's `factor` is what the baseline's times have to be multiplied by for that.
    """
    if not gated_us:
        return None
    gated, together, own = (statistics.median(times_us) for times_us in (gated_us, together_us, candidate_us))
    credited = max(gated, own)
    if credited >= together:
        return None
    return Suspicion(
        "own_wait",
        f"the baseline takes {together:.1f} us where it has to wait as the candidate does, and {gated:.1f} us behind "
        "the gate; what is gained over its launches alone is not credited",
        {"gated_us": gated, "together_us": together, "candidate_us": own, "factor": credited / together},
    )
