"""How many calls a burst holds, and whether its calls look like one computation instead of many."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Lengths vary over the upper quarter: enough that a runner cannot rely on one, at little cost in precision.
SHORTEST_SHARE = 0.75

# What a first call may cost an honest kernel beyond the later ones, caches apart: launch latency that a burst hides
# (1.4 us a launch in isolation.md), instruction fetch, and a fixed cost known to 3 us.
FIRST_CALL_US = 7.0
# Time saved by company, relative to the burst's own time a call, that needs no explanation.
UNREMARKABLE_GAIN = 1.25
FEWEST_SINGLES = 5


@dataclass(frozen=True, slots=True)
class BurstPlan:
    """Bursts of `shortest` to `calls` calls, each on its own inputs."""

    calls: int
    shortest: int

    def draw(self, rng: random.Random) -> int:
        """The length of the next burst."""
        return rng.randint(self.shortest, self.calls)


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


def batching(
    single_us: Sequence[float],
    burst_us: Sequence[float],
    *,
    baseline_single_us: Sequence[float] = (),
    baseline_burst_us: Sequence[float] = (),
    cache_us: float = 0.0,
) -> Suspicion | None:
    """Evidence that calls of a burst were computed together: a call alone takes far longer than a call in company.

    All times are microseconds a call by the judge's clock, fixed cost removed. `cache_us` is how long the card takes to
    fill its last-level cache: what a call alone may wait for, because the calls before left weights there. Granted
    beside it are FIRST_CALL_US, a quarter of the burst's time, the intervals of both medians, and whatever gain the
    baseline shows on the same protocol. None where fewer than five single calls are known.

    The sound answer is not a rejection but to time both sides by single-call bursts, where batching gains nothing.
    """
    if len(single_us) < FEWEST_SINGLES or len(burst_us) < FEWEST_SINGLES:
        return None
    single, burst = statistics.time_us(single_us), statistics.time_us(burst_us)
    allowance = FIRST_CALL_US + cache_us
    usual = 1.0
    if len(baseline_single_us) >= FEWEST_SINGLES and len(baseline_burst_us) >= FEWEST_SINGLES:
        usual = max(usual, statistics.median(baseline_single_us) / statistics.median(baseline_burst_us))
    allowed = usual * UNREMARKABLE_GAIN * burst.hi + allowance
    if single.lo <= allowed:
        return None
    gain = single.value / burst.value
    return Suspicion(
        "batched_calls",
        f"a call alone takes {single.value:.1f} us, in a burst {burst.value:.1f} us: {gain:.1f} times less, "
        f"where the baseline shows {usual:.2f}",
        {
            "single_us": single.value,
            "burst_us": burst.value,
            "gain": gain,
            "baseline_gain": usual,
            "allowed_single_us": allowed,
        },
    )
