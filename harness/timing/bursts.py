"""How many calls a burst has, and whether its calls may have been computed together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Lengths vary over the upper quarter, so that a runner cannot rely on one, at little cost in precision.
SHORTEST_SHARE = 0.75

# What a single call may cost an honest kernel beyond a call in a burst, apart from caches: launch latency that a burst
# hides, instruction fetch, and a fixed cost known to 3 us.
FIRST_CALL_US = 7.0
# A single call's time relative to a call's in a burst up to which there is no suspicion.
UNREMARKABLE_GAIN = 1.25
# The same two, beyond what the baseline's own single calls show. Above these limits bursts are not suspicious yet, but
# they are no longer relied on.
FIRST_CALL_BEYOND_BASELINE_US = 2.0
RELIABLE_GAIN = 1.05
# Standard deviations of chance that a difference of two sides' quartiles may come to.
CHANCE = 3.0
# With fewer single calls of each side, or fewer bursts of several calls, nothing is concluded.
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

    `single_us` is an estimate of one call in microseconds; if it is not positive (too fast to read) the burst
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


def unreliable(single_us: Sequence[float], burst_us: Sequence[float]) -> Suspicion | None:
    """Why bursts of several calls are unreliable for every candidate, from the trusted baseline's times alone.

    If the baseline's single call takes far longer than its call in a burst, a candidate that computes the calls of a
    burst together cannot be distinguished from one that gains as much honestly. On the CPU that happens with short
    calls, because waking a stopped process takes long. None if bursts are reliable, or if there are none.
    """
    if not burst_us:
        return None
    # On a busy machine, slow bursts must not hide the difference.
    single, burst = statistics.median(single_us), statistics.lower_quartile(burst_us)
    if single <= UNREMARKABLE_GAIN * burst + FIRST_CALL_US:
        return None
    return Suspicion(
        "one_call_bursts",
        f"a single call of the baseline takes {single:.0f} us, a call in a burst {burst:.0f} us, so both sides are "
        "timed by single calls; both times include waking a process, which brings the speedup nearer to 1",
        {"single_us": single, "burst_us": burst},
    )


def batching(
    single_us: Sequence[float],
    burst_us: Sequence[float],
    *,
    baseline_single_us: Sequence[float],
    baseline_burst_us: Sequence[float],
    at_most: float = math.inf,
    scatters: bool = False,
) -> Suspicion | None:
    """Evidence that the calls of a burst may have been computed together: single calls take longer.

    All times are microseconds a call by the judge's clock, fixed cost removed. If a single call takes more than
    `at_most` times a call in a burst, bursts are not relied on, whatever the baseline shows. `scatters`: the way of the
    messages is in single calls, so their quartiles are uncertain by what the baseline's readings scatter. None if fewer
    than ten single calls or two bursts of a side are known.

    Two grades, by how much longer a single call takes than a call in a burst:
    `one_call_bursts`: by more than the baseline's plus 5 % and 2 us; as a difference, this excuses no quick candidate
    beyond a quarter of its own time: what the baseline's first call costs, another's need not.
    `batched_calls`: by more than the baseline's, as a ratio plus a quarter and 7 us or as a difference, which no honest
    kernel known does.

    The lower quartile of single calls counts, not an interval: a call can be disturbed, or slow on purpose, but not
    faster than its work, so scatter must not help the candidate. For both grades the answer is not a rejection: both
    sides are timed by single calls, so that batching gains nothing. A false alarm only costs precision.
    """
    if min(len(single_us), len(baseline_single_us)) < FEWEST_SINGLES:
        return None
    if min(len(burst_us), len(baseline_burst_us)) < FEWEST_BURSTS:
        return None
    single, burst = _single_and_burst(single_us, burst_us)
    usual_single, usual_burst = _single_and_burst(baseline_single_us, baseline_burst_us)
    ratio = max(1.0, usual_single / usual_burst)
    explained = max(burst * ratio, burst + usual_single - usual_burst) * RELIABLE_GAIN
    in_itself = burst * min(at_most, max(UNREMARKABLE_GAIN, ratio * RELIABLE_GAIN))
    chance_us = CHANCE * math.sqrt(2) * statistics.quartile_deviation(baseline_single_us) if scatters else 0.0
    reliable = min(explained, in_itself) + FIRST_CALL_BEYOND_BASELINE_US + chance_us
    if single <= reliable:
        return None
    honest = max(explained + FIRST_CALL_BEYOND_BASELINE_US, burst * ratio * UNREMARKABLE_GAIN + FIRST_CALL_US)
    honest += chance_us
    gain = single / burst
    seen = f"a single call takes {single:.1f} us, a call in a burst {burst:.1f} us: {gain:.1f} times less"
    return Suspicion(
        "batched_calls" if single > honest else "one_call_bursts",
        f"{seen}; for the baseline it is {ratio:.2f} times; timed by single calls",
        {
            "single_us": single,
            "burst_us": burst,
            "gain": gain,
            "baseline_gain": ratio,
            "reliable_single_us": reliable,
            "honest_single_us": honest,
        },
    )


def unseen_gain(
    single_us: Sequence[float],
    burst_us: Sequence[float],
    *,
    baseline_single_us: Sequence[float],
    baseline_burst_us: Sequence[float],
) -> float:
    """By how many times calls in a burst may have been made quicker by computing them together without `batching`'s
    seeing it: what a single call takes, over what one takes that gains in company as the baseline's does; at least 1.

    `batching` has to excuse 5 % and 2 us, since first calls of honest kernels cost so much more or less than the
    baseline's. That is little of a long call, and two calls in three of one of 3 us (seen on an H100: 1.40x). In the
    median of honest kernels there is no such gain, whatever their calls take.
    """
    single, burst = _single_and_burst(single_us, burst_us)
    usual_single, usual_burst = _single_and_burst(baseline_single_us, baseline_burst_us)
    ratio = max(1.0, usual_single / usual_burst)
    expected = min(
        max(burst * ratio, burst + usual_single - usual_burst),
        burst * max(UNREMARKABLE_GAIN, ratio),
    )
    return max(1.0, single / expected)


def _single_and_burst(single_us: Sequence[float], burst_us: Sequence[float]) -> tuple[float, float]:
    return statistics.lower_quartile(single_us), statistics.median(burst_us)
