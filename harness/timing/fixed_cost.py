"""The time of an empty burst: opening the gate, switching contexts, detecting the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Standard error of a median over that of a mean, and half the 5-95 % range over the standard deviation (both normal).
MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2)
RANGE_TO_SIGMA = 1.645
FEWEST_READINGS = 5
# A runner that answers messages faster than the null burst's runner gains the difference. So the lower quartile of the
# null bursts is subtracted.
LOW = 0.25
# A burst's time is reliable if it is at least this many times the smallest one.
RESOLVED = 4.0


@dataclass(frozen=True, slots=True)
class FixedCost:
    """The fixed cost of a burst in microseconds: what is taken off a reading, the jitter of one reading (a standard
    deviation), and how wrong what is taken off may be (two standard errors, and what a null burst leaves out)."""

    us: float
    jitter_us: float
    error_us: float

    def per_call(self, burst_us: float, calls: int) -> float:
        """Microseconds a call of a burst of `calls`, fixed cost removed.

        What lies under the jitter reads as the jitter: never zero or negative, and never faster than the clock can
        tell; `resolves` says whether that is the case. Raises ValueError for fewer than one call.
        """
        if calls < 1:
            raise ValueError(f"a burst of {calls} calls has no time for one")
        return max(burst_us - self.us, self.smallest_us) / calls

    def resolves(self, burst_us: float) -> bool:
        """Whether a burst, fixed cost removed, can be distinguished from an empty one."""
        return burst_us > RESOLVED * self.smallest_us

    @property
    def smallest_us(self) -> float:
        """The shortest burst that can be distinguished from an empty one; positive even if all readings agree."""
        return max(self.jitter_us, self.error_us, 1e-3)

    def systematic(self, baseline_burst_us: float, candidate_burst_us: float, tick_us: float = 0.0) -> float:
        """By how much (relative) a ratio of bursts may be off whatever the number of pairs.

        An error of the fixed cost moves both sides by the same microseconds, so bursts of equal length cancel it:
        choose lengths accordingly. A clock that counts in ticks rounds each side by up to half a tick. Burst times
        are without the fixed cost. Raises ValueError where they are not positive.
        """
        if not (baseline_burst_us > 0 and candidate_burst_us > 0):
            raise ValueError("a burst takes time")
        shared = self.error_us * abs(1 / baseline_burst_us - 1 / candidate_burst_us)
        rounding = tick_us / 2 * (1 / baseline_burst_us + 1 / candidate_burst_us)
        return shared + rounding


# For a clock from which nothing is subtracted.
NONE = FixedCost(0.0, 0.0, 0.0)


def calibrate(null_bursts_us: Sequence[float], *, model_error_us: float = 0.0) -> FixedCost:
    """The fixed cost from bursts of a trusted runner that did nothing.

    `model_error_us` is by how much such a burst may differ from one with work in it. Raises ValueError for fewer than
    five readings, or for readings that are not finite or are negative.
    """
    readings = np.asarray(null_bursts_us, dtype=np.float64)
    if len(readings) < FEWEST_READINGS:
        raise ValueError(f"{len(readings)} null bursts are too few to calibrate on; {FEWEST_READINGS} are needed")
    if not (np.isfinite(readings) & (readings >= 0)).all():
        raise ValueError("a null burst's time is negative or not finite")
    low, taken, high = (float(end) for end in np.quantile(readings, [0.05, LOW, 0.95]))
    jitter = (high - low) / (2 * RANGE_TO_SIGMA)
    error = 2 * MEDIAN_EFFICIENCY * jitter / math.sqrt(len(readings)) + model_error_us
    return FixedCost(taken, jitter, error)
