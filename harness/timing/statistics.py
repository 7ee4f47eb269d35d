"""How sure: medians and the speedup of paired samples, each with a 95 % interval that covers in simulation.

No clock, no random numbers: the same samples give the same interval. `docs/timing.md` gives the reasons and the
simulated coverage; `benchmarks/interval_coverage.py` reproduces it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Normal quantile of a two-sided 98 % interval. The excess over 95 % pays for stopping as soon as the interval is
# narrow, which keeps the luckily narrow ones, and for correlation between neighbouring pairs.
QUANTILE = 2.33

# Below this many values order statistics cannot cover, and Student's t (95 %, n - 1 degrees of freedom) stands in.
FEWEST_RANKED = 4
FEWEST = 2
STUDENT_T = {2: 12.706, 3: 4.303}

# An order effect is taken out only where it exceeds this many standard errors; a correction always made would cost
# coverage where there is nothing to correct.
CLEAR_EFFECT = 3.0
FEWEST_OF_AN_ORDER = 3

# A lag-1 correlation above this is read as this: a median of so few effective samples is unknown either way.
STRONGEST_CORRELATION = 0.9

# Standard error of a median over that of a mean, and standard deviation over median absolute deviation (normal).
MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2)
MAD_TO_SIGMA = 1.4826

# exp() of anything beyond overflows; no ratio of times comes near.
LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A positive figure (a ratio, or microseconds) with its 95 % interval. Raises ValueError unless 0 < lo <= value
    <= hi."""

    value: float
    lo: float
    hi: float

    def __post_init__(self) -> None:
        if not 0 < self.lo <= self.value <= self.hi:
            raise ValueError(f"not an interval: {self.lo} <= {self.value} <= {self.hi}")

    @classmethod
    def of_logs(cls, lo: float, value: float, hi: float) -> Interval:
        """From the logarithms of its figures."""
        lo, value, hi = (math.exp(min(max(end, -LARGEST_LOG), LARGEST_LOG)) for end in (lo, value, hi))
        return cls(value, lo, hi)

    @property
    def logs(self) -> tuple[float, float, float]:
        """The logarithms of `lo`, `value` and `hi`."""
        return math.log(self.lo), math.log(self.value), math.log(self.hi)

    @property
    def half_width(self) -> float:
        """Half of log(hi/lo): 0.005 reads as 'plus or minus 0.5 %', and is the same for a ratio and its inverse."""
        return (math.log(self.hi) - math.log(self.lo)) / 2


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two. Raises ValueError where there is none."""
    if len(values) == 0:
        raise ValueError("no values, no median")
    return float(np.median(np.asarray(values, dtype=np.float64)))


def lower_quartile(values: Sequence[float]) -> float:
    """The value that a quarter lie below, interpolated. Raises ValueError where there is none."""
    if len(values) == 0:
        raise ValueError("no values, no quartile")
    return float(np.quantile(np.asarray(values, dtype=np.float64), 0.25))


def quartile_deviation(values: Sequence[float]) -> float:
    """The standard deviation of the lower quartile of so many values, by how far their middle half reaches; as normal
    ones have it."""
    lower, upper = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.75])
    # sqrt(p (1 - p) / n) over the density at the quartile, 0.318 / sigma; the middle half is 1.349 sigma wide.
    return 1.01 * float(upper - lower) / math.sqrt(len(values))


def speedup(
    baseline_us: Sequence[float],
    candidate_us: Sequence[float],
    *,
    baseline_first: Sequence[bool] | None = None,
    systematic: float = 0.0,
) -> Interval:
    """exp(median of log(baseline/candidate)) over pairs, with its 95 % interval.

    Entry i of each list (microseconds a call) is pair i, in the order measured. `baseline_first` tells which side of
    each pair ran first, so that an order effect can be taken out. `systematic` widens each end by a relative error
    that repetition does not average away (`FixedCost.systematic`). Raises ValueError for fewer than two pairs,
    lists of different lengths, or times that are not positive and finite.
    """
    if len(baseline_us) != len(candidate_us):
        raise ValueError(f"{len(baseline_us)} baseline times against {len(candidate_us)} of the candidate")
    baseline, candidate = _logs(baseline_us), _logs(candidate_us)
    ratios = baseline - candidate if baseline_first is None else log_ratios(baseline, candidate, baseline_first)
    return _exponential(median_interval(ratios), systematic)


def time_us(samples_us: Sequence[float], *, systematic: float = 0.0) -> Interval:
    """The median time of one side in microseconds with its 95 % interval; same method and errors as `speedup`.

    It says where this session's median lies. Slow drift, which a paired ratio cancels, stays in.
    """
    return _exponential(median_interval(_logs(samples_us)), systematic)


def log_ratios(baseline: ArrayLike, candidate: ArrayLike, baseline_first: ArrayLike) -> Floats:
    """Logarithms of times, of pairs along the last axis, as their ratios' without the order effect."""
    flags = np.asarray(baseline_first, dtype=np.bool_)
    effect = order_effect(baseline, candidate, flags)
    return np.asarray(baseline) - np.asarray(candidate) - np.where(flags, 1.0, -1.0) * effect[..., None]


def median_interval(values: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Median, lower and upper end of its 95 % interval, along the last axis: shape [..., n] gives three of [...].

    The ends are the order statistics of ranks (n+1)/2 -+ z/2 sqrt(n tau), interpolated: the interval that inverts the
    sign test, whose coverage needs nothing of the distribution (Thompson 1936; interpolation after Hettmansperger and
    Sheather 1986). tau is `serial_inflation`. Ranks beyond the extremes go on at the mean spacing. Raises ValueError
    for fewer than two values.
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[-1] if x.ndim else 0
    if n < FEWEST:
        raise ValueError(f"an interval needs two values, not {n}")
    middle = np.asarray(np.median(x, axis=-1))
    if n < FEWEST_RANKED:
        mean = np.asarray(x.mean(axis=-1))
        half = STUDENT_T[n] * x.std(axis=-1, ddof=1) / math.sqrt(n)
        return middle, np.minimum(mean - half, middle), np.maximum(mean + half, middle)
    ordered = np.sort(x, axis=-1)
    span = QUANTILE / 2 * np.sqrt(n * serial_inflation(x))
    low, high = _at_rank(ordered, (n + 1) / 2 - span), _at_rank(ordered, (n + 1) / 2 + span)
    return middle, np.minimum(low, middle), np.maximum(high, middle)


def serial_inflation(values: ArrayLike) -> Floats:
    """By how much correlation of neighbours multiplies the variance of the median: tau >= 1; shape [..., n] -> [...].

    tau = (1 + r) / (1 - r), r the lag-1 correlation of the signs about the median (Gastwirth and Rubin 1971, with the
    signs taken for a first-order process). Negative r counts as none: narrowing an interval by a guess is no bargain.
    """
    x = np.asarray(values, dtype=np.float64)
    signs = np.sign(x - np.median(x, axis=-1, keepdims=True))
    power = np.maximum((signs * signs).sum(axis=-1), 1.0)
    r = np.clip((signs[..., 1:] * signs[..., :-1]).sum(axis=-1) / power, 0.0, STRONGEST_CORRELATION)
    return np.asarray((1 + r) / (1 - r))


def order_effect(baseline: ArrayLike, candidate: ArrayLike, baseline_first: ArrayLike) -> Floats:
    """Half the difference of the log-ratios' medians between pairs with the baseline first and with it second, as far
    as both sides have it; [..., n] -> [...].

    0 where it is not clear (three standard errors) or one order has fewer than three pairs. A constant cost of going
    second, and linear drift, both look like this, and make either side slower. Where the order matters to one side
    alone, which of its times are the right ones is not known: they stay as they are, and the interval is wide.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (baseline, candidate)]
    x = sides[0] - sides[1]
    flags = np.broadcast_to(np.asarray(baseline_first, dtype=np.bool_), x.shape)
    n = x.shape[-1]
    firsts = flags.sum(axis=-1)
    if np.minimum(firsts, n - firsts).min() < FEWEST_OF_AN_ORDER:
        return np.zeros(x.shape[:-1])
    first, second = _by_order(x, flags)
    effect = np.asarray((first - second)[..., 0] / 2)
    sigma = MAD_TO_SIGMA * np.median(np.abs(x - np.where(flags, first, second)), axis=-1)
    clear = np.abs(effect) > CLEAR_EFFECT * MEDIAN_EFFICIENCY * sigma / math.sqrt(n)
    # By how much a side takes longer if it goes second.
    late_baseline, late_candidate = (
        sign * (first - second)[..., 0]
        for sign, (first, second) in zip((-1, 1), (_by_order(side, flags) for side in sides), strict=True)
    )
    alike = np.sign(late_baseline) == np.sign(late_candidate)
    shared = np.where(alike, np.minimum(np.abs(late_baseline), np.abs(late_candidate)), 0.0)
    return np.where(clear, np.clip(effect, -shared, shared), 0.0)


def _by_order(values: Floats, flags: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The medians of pairs with the baseline first and of those with it second: [..., n] -> two of [..., 1]."""
    first = np.nanmedian(np.where(flags, values, np.nan), axis=-1, keepdims=True)
    return first, np.nanmedian(np.where(flags, np.nan, values), axis=-1, keepdims=True)


def _at_rank(ordered: Floats, rank: Floats) -> Floats:
    """The value at a fractional 1-based rank of sorted [..., n]."""
    n = ordered.shape[-1]
    inside = np.clip(rank, 1, n)
    below = np.minimum(np.floor(inside).astype(np.intp), n - 1)
    left = np.take_along_axis(ordered, below[..., None] - 1, axis=-1)[..., 0]
    right = np.take_along_axis(ordered, below[..., None], axis=-1)[..., 0]
    spacing = (ordered[..., -1] - ordered[..., 0]) / (n - 1)
    return np.asarray(left + (inside - below) * (right - left) + (rank - inside) * spacing)


def _logs(times_us: Sequence[float]) -> Floats:
    times = np.asarray(times_us, dtype=np.float64)
    if not (np.isfinite(times) & (times > 0)).all():
        raise ValueError("a time is not positive and finite")
    return np.asarray(np.log(times))


def _exponential(logs: tuple[Floats, Floats, Floats], systematic: float) -> Interval:
    if not (math.isfinite(systematic) and systematic >= 0):
        raise ValueError(f"a systematic error of {systematic} is none")
    middle, low, high = (float(end) for end in logs)
    return Interval.of_logs(low - systematic, middle, high + systematic)
