"""What a clock around bursts tells: what is taken off its readings, how wrong what is left may be, and what is too
short for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing import fixed_cost, statistics
from harness.timing.bursts import BurstPlan
from harness.timing.fixed_cost import FixedCost
from harness.timing.sampling import Samples, Side

# By how much a null burst may differ from one with work in it: behind the gate (seen: up to 3 us on an H200), and on a
# host, where runners have more or fewer threads to wake.
NULL_ERROR_US, HOST_NULL_ERROR_US = 3.0, 5.0
# Two processes running the same kernels differ by this for each of them, for as long as they live, whatever the length
# of bursts: found on an H200, as what the intervals needed in order to contain 1 when a candidate runs against itself,
# with benchmarks/precision.py and on 24 problems of KernelBench's level 2, whose calls run 3 to 22 kernels. Bursts of
# two processes differ by some more, independent of that (seen: 0.7 us around nothing, 1.3 us around a call).
PROCESS_US, PROCESS_SHARE, PROCESS_BURST_US = 0.18, 0.002, 1.5
# The same on a host, where memory lies luckily or not: two copies in one plain process differ by 1 to 2 % from process
# to process (precision.py).
HOST_PROCESS_SHARE = 0.02
# A process on a host goes on from its standstill with cold caches and more or fewer threads to wake (seen: 0.2 ms).
HOST_WAKE_US = 300.0
# Of PyTorch's operators on a GPU, in the mean of those problems.
KERNELS_AN_OPERATOR = 2


def calibrated(null_bursts_us: Sequence[float], *, on_card: bool) -> FixedCost:
    """What a burst costs that runs nothing, from such bursts of a trusted runner."""
    return fixed_cost.calibrate(null_bursts_us, model_error_us=NULL_ERROR_US if on_card else HOST_NULL_ERROR_US)


class BurstClock:
    """The clock that both sides of a comparison are timed by, and the bursts that it is read around.

    `calibrated` is a burst's fixed cost by this clock, `empty_us` what a burst without calls takes on a card without
    the gate, `late` why nothing of a call may be told before the clock starts (`Trial.late`). Whoever measures
    keeps `gated`, `unfit` (the side whose calls cannot be enqueued behind the gate), `bursts`, `burst_us` (what a burst
    of each side takes), `opening_us` (what of the candidate's bursts without the gate went by opening its outputs) and
    `kernels` (how many a call of each side runs) up to date.
    """

    def __init__(self, calibrated: FixedCost, empty_us: float = 0.0, *, on_card: bool, late: str) -> None:
        self.on_card = on_card
        # Behind a gate the calls are told before the clock starts.
        self.gated = on_card and not late
        self.unfit: Side = "candidate"
        self.bursts: dict[Side, BurstPlan] = {}
        self.burst_us: dict[Side, float] = {}
        self.opening_us: list[float] = []
        self.kernels: dict[Side, int] = {}
        self._calibrated = calibrated
        self._empty_us = empty_us
        self._late = late

    @property
    def name(self) -> str:
        """Whose clock the times are by, as records name it."""
        if not self.on_card:
            return "host"
        return "device" if self.gated else "device_ungated"

    @property
    def why_ungated(self) -> str:
        """Empty where the times are not those of a card without the gate."""
        if self.name != "device_ungated":
            return ""
        reason = self._late or f"the {self.unfit} waits for the device itself, or launches more than that can queue"
        return f"{reason}, so times include launch latency and the way of the messages"

    @property
    def _single_calls(self) -> bool:
        """Whether every burst is of one call."""
        return bool(self.bursts) and all(plan.calls == 1 for plan in self.bursts.values())

    @property
    def fixed_cost(self) -> FixedCost:
        """What a burst costs that runs nothing, where that is taken off.

        Without a card's gate it is not, nor from single calls on the CPU: who sees to messages more quickly than the
        baseline's runner would gain. All that an empty burst takes may be left out there, and nothing shorter counts.
        """
        if self._single_calls and not self.on_card:
            return FixedCost(0.0, 0.0, max(HOST_NULL_ERROR_US, self._calibrated.us))
        ungated = self.on_card and not self.gated
        return fixed_cost.NONE if ungated else self._calibrated

    @property
    def systematic(self) -> float:
        """What no number of pairs averages away: the fixed cost's error, and what two processes differ by for good."""
        fixed = self.fixed_cost
        # What is too short to be told from nothing reads as the shortest that can be, on either side: the ratio of two
        # such times says nothing, however often it is taken.
        hidden = max(
            (fixed.smallest_us / us for us in self.burst_us.values() if not fixed.resolves(us)),
            default=0.0,
        )
        if not self.on_card:
            # Each process goes on from its standstill in its own way, so the error is not one that both sides share;
            # and the baseline's runner is ours.
            own_us = HOST_NULL_ERROR_US if self._single_calls else fixed.error_us
            errors_us: dict[Side, float] = {"baseline": own_us, "candidate": fixed.error_us}
            error = math.hypot(*(errors_us[side] / us for side, us in self.burst_us.items()))
            return HOST_PROCESS_SHARE + max(error, hidden)
        systematic = fixed.systematic(self.burst_us["baseline"], self.burst_us["candidate"])
        if self.name == "device_ungated":
            # Who sees to messages more quickly than the baseline's runner gains that; and who works on while the judge
            # opens its outputs, that time.
            opening_us = statistics.median(self.opening_us) if self.opening_us else 0.0
            systematic += (self._empty_us + opening_us) / self.burst_us["candidate"]
        unlike = [
            math.hypot(PROCESS_US * self.kernels.get(side, 1) * self.bursts[side].calls, PROCESS_BURST_US) / burst_us
            for side, burst_us in self.burst_us.items()
        ]
        return max(systematic, hidden) + PROCESS_SHARE + max(unlike)

    @property
    def unclaimed_us(self) -> float:
        """What a runner's clock may miss of a call: the fixed cost's error, and a host's way out of a standstill."""
        fixed = self.fixed_cost
        wake_us = 0.0 if self.on_card else HOST_WAKE_US
        return (fixed.error_us + fixed.jitter_us + wake_us) / self.bursts["candidate"].shortest

    def unresolved(self, samples: Samples) -> str:
        """The sides whose times are too short to be told from none; empty where both are times."""
        sides: dict[Side, list[float]] = {"candidate": samples.candidate_us, "baseline": samples.baseline_us}
        found = []
        for side, times_us in sides.items():
            calls = self.bursts[side].shortest
            if not self.fixed_cost.resolves(statistics.median(times_us) * calls):
                found.append(f"the {side}'s")
        return " and ".join(found)
