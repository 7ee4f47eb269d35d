"""How many calls a burst holds, and whether its calls look like one computation instead of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Lengths vary over the upper quarter: enough that a runner cannot rely on one, at little cost in precision.
SHORTEST_SHARE = 0.75

# What a first call may cost an honest kernel beyond the later ones, caches apart: launch latency that a burst hides
# (1.4 us a launch in isolation.md), instruction fetch, and a fixed cost known to 3 us.
FIRST_CALL_US = 7.0
# Time saved by company, relative to the burst's own time a call, that is no reason for suspicion.
UNREMARKABLE_GAIN = 1.25
# The same two where the baseline's own singles, read through the same clock, say what a first call costs here: beyond
# them a burst is not evidence of suspicious calls, but not to be relied on either.
FIRST_CALL_BEYOND_BASELINE_US = 2.0
RELIABLE_GAIN = 1.05
# Single-call bursts of each side, and bursts of several calls, below which there is nothing to say.
FEWEST_SINGLES = 10
FEWEST_BURSTS = 2


@dataclass(frozen=True, slots=True)
class BurstPlan:
    """Bursts of `shortest` to `calls` calls, each on its own inputs."""

    calls: int
    shortest: int

    def at(self, share: float) -> int:
        """The length of a burst, at a share (0 to 1) of the way from the shortest to the longest."""
        return self.shortest + round(share * (self.calls - self.shortest))


def plan(single_us: float, *, target_us: float, call_bytes: int, memory_bytes: int, max_calls: int) -> BurstPlan:
    """As many calls as fill `target_us`, within the memory for distinct inputs and outputs and within `max_calls`.

    `single_us` is an estimate of one call in microseconds; where it is not positive (too fast to read) the burst
    is as long as allowed. `call_bytes` are the inputs and outputs of one call. Plan each side by its own time: bursts
    of equal duration cancel an error of the fixed cost (`FixedCost.systematic`). Raises ValueError where `target_us` or
    `max_calls` is not positive.
    """
    if target_us <= 0 or max_calls < 1:
        raise ValueError("a burst needs a duration and at least one call")
    wanted = math.ceil(min(target_us / single_us, max_calls)) if single_us > 0 else max_calls
    room = memory_bytes // call_bytes if call_bytes > 0 else max_calls
    calls = max(1, min(wanted, room, max_calls))
    return BurstPlan(calls, math.ceil(calls * SHORTEST_SHARE))


def no_company(single_us: Sequence[float], burst_us: Sequence[float]) -> Suspicion | None:
    """Why bursts of several calls cannot be relied on, whoever is timed; by the trusted baseline's times alone.

    Where a call of its takes far longer alone, a candidate whose calls of a burst are computed together cannot be told
    from one that gains as much by company: on the CPU that is a short call, beside which a process takes long to go on
    from its standstill. None where it does not, or where there are no bursts of several.
    """
    if not burst_us:
        return None
    # On a busy machine the doubt is the bursts'.
    single, burst = statistics.median(single_us), statistics.lower_quartile(burst_us)
    if single <= UNREMARKABLE_GAIN * burst + FIRST_CALL_US:
        return None
    return Suspicion(
        "one_call_bursts",
        f"a call of the baseline takes {single:.0f} us alone and {burst:.0f} us among others, so both sides are timed "
        "by single calls; what waking a process takes is in both times, and the speedup nearer to 1 than without it",
        {"single_us": single, "burst_us": burst},
    )


def batching(
    single_us: Sequence[float],
    burst_us: Sequence[float],
    *,
    baseline_single_us: Sequence[float],
    baseline_burst_us: Sequence[float],
    cache_us: float = 0.0,
    at_most: float = math.inf,
) -> Suspicion | None:
    """Evidence that a call gains by company: that calls of a burst may have been computed together.

    All times are microseconds a call by the judge's clock, fixed cost removed. `cache_us` is how long the card takes to
    fill its last-level cache: what a call alone may wait for, because the calls before left weights there. A call
    alone that takes more than `at_most` times what one in company does is not relied on, whatever the baseline's do.
    None where fewer than ten single calls or two bursts of a side are known.

    Two grades, by what a call alone takes beyond a call in company:
    `one_call_bursts`: more than the baseline's calls do, as a ratio or as a difference, and 5 % and 2 us.
    `batched_calls`: more than that ratio and a quarter, and 7 us: no honest kernel known does.

    Of single calls the lower quartile counts, not an interval: a call can be disturbed, or slow on purpose, but not
    faster than its work, so that scatter must not speak for the candidate. The sound answer to both grades is not a
    rejection but to time both sides by single-call bursts, where company gains nothing; a false alarm costs precision
    alone.
    """
    if min(len(single_us), len(baseline_single_us)) < FEWEST_SINGLES:
        return None
    if min(len(burst_us), len(baseline_burst_us)) < FEWEST_BURSTS:
        return None
    single, burst = statistics.lower_quartile(single_us), statistics.median(burst_us)
    usual_single, usual_burst = statistics.lower_quartile(baseline_single_us), statistics.median(baseline_burst_us)
    ratio = max(1.0, usual_single / usual_burst)
    explained = max(burst * ratio, burst + usual_single - usual_burst) * RELIABLE_GAIN
    explained += FIRST_CALL_BEYOND_BASELINE_US + cache_us
    reliable = min(explained, burst * at_most + FIRST_CALL_BEYOND_BASELINE_US + cache_us)
    if single <= reliable:
        return None
    honest = max(explained, burst * ratio * UNREMARKABLE_GAIN + FIRST_CALL_US + cache_us)
    gain = single / burst
    seen = f"a call alone takes {single:.1f} us, in a burst {burst:.1f} us: {gain:.1f} times less"
    return Suspicion(
        "batched_calls" if single > honest else "one_call_bursts",
        f"{seen}, where the baseline shows {ratio:.2f}; timed by single calls",
        {
            "single_us": single,
            "burst_us": burst,
            "gain": gain,
            "baseline_gain": ratio,
            "reliable_single_us": reliable,
            "honest_single_us": honest,
        },
    )
