"""Whether the baseline is slower beside a candidate than alone. Slowing the baseline would raise the speedup.

A candidate that loads the machine cannot be distinguished with certainty from others that do. So no candidate is
rejected: the baseline's time alone counts, and the record says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Clocks and other programs may explain up to this many times the time alone. Beyond it the speedup is over the time
# alone. After the candidate has ended the baseline is timed again; if it still is slow, the cause is another one.
TOLERATED = 1.05
# On the CPU a candidate stands still in the baseline's turn, and what else runs there explains more. But the kernel may
# go on with what it has begun for a candidate (timers, memory to be written back).
TOLERATED_ON_CPU = 1.25
FEWEST = 5


@dataclass(frozen=True)
class Usual:
    """Microseconds a call of a side, in bursts of one call and, if there are any, in bursts of several."""

    single_us: list[float]
    burst_us: list[float]

    def a_call(self, calls: int) -> list[float]:
        """Microseconds a call in bursts of `calls` calls; the extra time of the first call is divided among them."""
        if calls == 1 or not (self.single_us and self.burst_us):
            return self.single_us
        beyond_us = max(0.0, statistics.median(self.single_us) - statistics.median(self.burst_us))
        return [value + beyond_us / calls for value in self.burst_us]

    def with_cost(self, burst_us: float, calls: int) -> Usual:
        """The same times with what a burst costs beside its calls, of which there are `calls` in the longer ones."""
        return Usual([us + burst_us for us in self.single_us], [us + burst_us / calls for us in self.burst_us])

    def slower(self, later: Usual) -> bool:
        """Whether `later` is slower, by the longest bursts of both."""
        before, now = (usual.burst_us or usual.single_us for usual in (self, later))
        return slow_baseline(before, now, slack_us=0.0) is not None


@dataclass(frozen=True)
class Alone:
    """The baseline's times while no candidate is there, behind the gate and without it.

    A candidate that waits for the device itself cannot be timed behind the gate. Then the baseline is not, either, and
    its times beside that candidate include the host's launch latency.
    """

    gated: Usual = Usual([], [])
    ungated: Usual = Usual([], [])

    def slower(self, later: Alone) -> bool:
        """Whether the baseline has become slower by itself between these times and `later`."""
        return self.gated.slower(later.gated) or self.ungated.slower(later.ungated)


def slow_baseline(
    alone_us: Sequence[float], together_us: Sequence[float], *, slack_us: float, tolerated: float = TOLERATED
) -> Suspicion | None:
    """Evidence that the baseline takes longer, in microseconds a call, while the candidate's process is there.

    Both in bursts of the same length. `slack_us` is allowed beside `tolerated` and the intervals of both medians. The
    baseline's times beside the candidate, times the evidence's `factor`, are its times alone.
    None with fewer than five readings.
    """
    if len(together_us) < FEWEST:
        return None
    together = statistics.time_us(together_us)
    if together.lo <= most_us(alone_us, slack_us=slack_us, tolerated=tolerated):
        return None
    alone = statistics.time_us(alone_us)
    return Suspicion(
        "slow_baseline",
        f"the baseline takes {together.value:.1f} us beside this candidate and {alone.value:.1f} us alone; "
        "the speedup is over its time alone",
        {"alone_us": alone.value, "together_us": together.value, "factor": alone.value / together.value},
    )


def most_us(alone_us: Sequence[float], *, slack_us: float, tolerated: float = TOLERATED) -> float:
    """Microseconds that a call of the baseline may count for beside a candidate: what is tolerated of its time alone.

    No limit with fewer than five readings.
    """
    if len(alone_us) < FEWEST:
        return math.inf
    return tolerated * statistics.time_us(alone_us).hi + slack_us


def held_to(most: float, baseline_us: Sequence[float], candidate_us: Sequence[float]) -> list[float]:
    """The baseline's times of pairs, none of them above `most` (`most_us`), unless the candidate's own time in that
    pair is above its usual one by as much: whatever slows both sides is nobody's gain.

    A candidate that loads the device in some of the baseline's turns only would move the median, and not the interval's
    lower end, by which `slow_baseline` goes.
    """
    usual = statistics.median(candidate_us) if candidate_us else 1.0
    return [min(us, most * max(1.0, own / usual)) for us, own in zip(baseline_us, candidate_us, strict=True)]


def own_wait(
    gated_us: Sequence[float], together_us: Sequence[float], candidate_us: Sequence[float]
) -> Suspicion | None:
    """What is not credited to a candidate that waits for the device itself, so both sides are timed without the gate.

    Without the gate the baseline's time, `together_us`, includes the host's launches, so a candidate could wait on
    purpose to be timed that way. Behind the gate the baseline takes `gated_us`. All in microseconds a call. A speedup
    over `gated_us` counts; one that is only over the launches becomes 1; a slowdown stays as it is. The evidence's
    `factor` multiplies the baseline's times accordingly.
    """
    if not gated_us:
        return None
    gated, together, own = (statistics.median(times_us) for times_us in (gated_us, together_us, candidate_us))
    credited = max(gated, own)
    if credited >= together:
        return None
    return Suspicion(
        "own_wait",
        f"the baseline takes {together:.1f} us with its launches and {gated:.1f} us behind the gate; the candidate, "
        "which waits for the device itself, gets no credit for the launches",
        {"gated_us": gated, "together_us": together, "candidate_us": own, "factor": credited / together},
    )
