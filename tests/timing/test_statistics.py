"""The statistics on made-up numbers; coverage by simulation is in test_interval_coverage.py."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing import statistics
from harness.timing.statistics import Interval

times = st.floats(min_value=0.1, max_value=1e6)
pairs = st.lists(st.tuples(times, times), min_size=2, max_size=40)


def noisy(rng: random.Random, count: int, true_us: float, sigma: float = 0.005) -> list[float]:
    return [true_us * math.exp(rng.gauss(0, sigma)) for _ in range(count)]


def near(interval: Interval, other: Interval) -> None:
    # The ends of few, wildly different pairs lie far out, where rounding of the logarithm shows.
    for name in ("value", "lo", "hi"):
        assert math.log(getattr(interval, name)) == pytest.approx(math.log(getattr(other, name)), abs=1e-9)


@given(pairs, st.floats(min_value=1e-3, max_value=1e3))
def test_the_unit_of_time_does_not_matter(measured: list[tuple[float, float]], unit: float) -> None:
    baseline, candidate = zip(*measured, strict=True)
    scaled = statistics.speedup([unit * t for t in baseline], [unit * t for t in candidate])
    # An order statistic does not move, but rounding can turn a tie at the median into a sign: compare the middle only.
    assert math.log(scaled.value) == pytest.approx(math.log(statistics.speedup(baseline, candidate).value), abs=1e-9)


@given(pairs, st.integers(min_value=-8, max_value=8))
def test_stretching_the_logs_stretches_the_interval(measured: list[tuple[float, float]], power: int) -> None:
    baseline, candidate = zip(*measured, strict=True)
    logs = np.log(np.asarray(baseline)) - np.log(np.asarray(candidate))
    stretch = float(2**power)
    before, after = statistics.median_interval(logs), statistics.median_interval(logs * stretch)
    for end, scaled in zip(before, after, strict=True):
        assert float(scaled) == pytest.approx(float(end) * stretch, abs=1e-9, rel=1e-9)


@given(pairs, st.floats(min_value=0, max_value=0.1))
def test_swapping_sides_inverts_speedup_and_interval(measured: list[tuple[float, float]], systematic: float) -> None:
    baseline, candidate = zip(*measured, strict=True)
    there = statistics.speedup(baseline, candidate, systematic=systematic)
    back = statistics.speedup(candidate, baseline, systematic=systematic)
    near(Interval(1 / back.value, 1 / back.hi, 1 / back.lo), there)
    assert back.half_width == pytest.approx(there.half_width, abs=1e-9)


@given(st.lists(st.tuples(times, times, st.booleans()), min_size=2, max_size=40))
def test_swapping_sides_and_orders_inverts_too(measured: list[tuple[float, float, bool]]) -> None:
    baseline, candidate, first = zip(*measured, strict=True)
    there = statistics.speedup(baseline, candidate, baseline_first=first)
    back = statistics.speedup(candidate, baseline, baseline_first=[not flag for flag in first])
    near(Interval(1 / back.value, 1 / back.hi, 1 / back.lo), there)


@given(pairs)
def test_the_interval_holds_its_value_and_equal_sides_give_one(measured: list[tuple[float, float]]) -> None:
    baseline, candidate = zip(*measured, strict=True)
    interval = statistics.speedup(baseline, candidate)
    assert interval.lo <= interval.value <= interval.hi
    assert statistics.speedup(baseline, baseline) == Interval(1.0, 1.0, 1.0)


@given(st.lists(times, min_size=1, max_size=50))
def test_median_has_half_on_either_side(values: list[float]) -> None:
    middle = statistics.median(values)
    assert sum(v <= middle * (1 + 1e-12) for v in values) * 2 >= len(values)
    assert sum(v >= middle * (1 - 1e-12) for v in values) * 2 >= len(values)


def test_speedup_is_baseline_over_candidate() -> None:
    rng = random.Random(1)
    interval = statistics.speedup(noisy(rng, 40, 300.0), noisy(rng, 40, 200.0))
    assert interval.lo < 1.5 < interval.hi
    assert 1.495 < interval.value < 1.505
    assert 0.001 < interval.half_width < 0.006


def test_the_unit_leaves_the_whole_interval_of_ordinary_times() -> None:
    rng = random.Random(1)
    baseline, candidate = noisy(rng, 41, 300.0), noisy(rng, 41, 200.0)
    in_ms = statistics.speedup([t / 1000 for t in baseline], [t / 1000 for t in candidate])
    near(in_ms, statistics.speedup(baseline, candidate))


def test_drift_of_the_card_cancels_in_pairs() -> None:
    rng = random.Random(2)
    drift = [1 + 0.2 * i / 60 for i in range(60)]
    baseline = [t * d for t, d in zip(noisy(rng, 60, 100.0), drift, strict=True)]
    candidate = [t * d for t, d in zip(noisy(rng, 60, 100.0), drift, strict=True)]
    interval = statistics.speedup(baseline, candidate)
    assert interval.lo < 1 < interval.hi
    assert interval.half_width < 0.005
    # One side alone keeps the drift, and says so by its width.
    assert statistics.time_us(baseline).half_width > 0.02


def test_outliers_move_nothing() -> None:
    rng = random.Random(3)
    baseline, candidate = noisy(rng, 60, 100.0), noisy(rng, 60, 50.0)
    before = statistics.speedup(baseline, candidate)
    for i in range(0, 60, 15):
        candidate[i] *= 20
    after = statistics.speedup(baseline, candidate)
    assert after.value == pytest.approx(before.value, rel=0.002)
    assert after.half_width < 1.5 * before.half_width
    assert after.lo < 2 < after.hi


def test_bimodal_noise_gives_an_honest_interval() -> None:
    rng = random.Random(4)
    sides = [
        [100.0 * (1 + 0.02 * (rng.random() < 0.3)) * math.exp(rng.gauss(0, 0.001)) for _ in range(80)] for _ in "ab"
    ]
    interval = statistics.speedup(*sides)
    assert interval.lo < 1 < interval.hi
    assert interval.half_width < 0.01


def test_slow_first_half_of_both_sides_cancels() -> None:
    rng = random.Random(5)
    slow = [1.1] * 20 + [1.0] * 20
    sides = [[t * s for t, s in zip(noisy(rng, 40, 100.0), slow, strict=True)] for _ in "ab"]
    interval = statistics.speedup(*sides)
    assert interval.lo < 1 < interval.hi
    assert interval.half_width < 0.006


def test_slow_first_half_of_one_side_widens_the_interval_over_both_levels() -> None:
    rng = random.Random(6)
    candidate = noisy(rng, 20, 110.0, 0.001) + noisy(rng, 20, 100.0, 0.001)
    interval = statistics.speedup(noisy(rng, 40, 100.0, 0.001), candidate)
    assert interval.lo < 1 / 1.09
    assert interval.hi > 0.99


def test_lag_correlation_widens() -> None:
    rng = np.random.default_rng(7)
    white = rng.standard_normal((500, 100))
    red = white.copy()
    for i in range(1, 100):
        red[:, i] = 0.6 * red[:, i - 1] + 0.8 * white[:, i]
    assert np.median(statistics.serial_inflation(white)) < 1.2
    assert 2 < np.median(statistics.serial_inflation(red)) < 3
    # Alternation is no ground for narrowing.
    assert statistics.serial_inflation([1.0, -1.0] * 10) == 1


def test_a_clear_order_effect_is_taken_out_and_an_unclear_one_is_not() -> None:
    rng = np.random.default_rng(8)
    first = np.asarray([True, False, False, True] * 10)
    logs = 0.002 * rng.standard_normal(40)
    level = np.zeros(40)
    assert statistics.order_effect(logs, level, first) == 0
    # Who goes first is slower.
    shifted, other = logs + np.where(first, 0.03, 0.0), np.where(first, 0.0, 0.03)
    assert statistics.order_effect(shifted, other, first) == pytest.approx(0.03, abs=0.002)
    baseline, candidate = 100 * np.exp(shifted), 100 * np.exp(other)
    blind = statistics.speedup(baseline.tolist(), candidate.tolist())
    seeing = statistics.speedup(baseline.tolist(), candidate.tolist(), baseline_first=first.tolist())
    assert blind.half_width > 0.02
    assert seeing.half_width < 0.003
    assert seeing.lo < 1 < seeing.hi
    # Nothing can be told where one order is missing.
    assert statistics.order_effect(shifted, other, np.ones(40, dtype=bool)) == 0


@pytest.mark.parametrize("swapped", [False, True])
def test_what_the_order_does_to_one_side_alone_is_not_taken_out(swapped: bool) -> None:
    """Seen: a baseline that takes 10 % longer whenever it goes first, and the same code beside it that never does."""
    first = [True, False, False, True, True, False, True, False, False, True]
    uneven, even = [3000.0 if flag != swapped else 2733.0 for flag in first], [2733.0 + i / 9 for i in range(10)]
    sides = (even, uneven) if swapped else (uneven, even)
    interval = statistics.speedup(*sides, baseline_first=first)
    assert interval.half_width > 0.04
    assert interval.lo < 1.001 if not swapped else interval.hi > 0.999


def test_a_quantised_clock_needs_its_systematic_error() -> None:
    baseline, candidate = [51.0] * 30, [50.0] * 30
    blind = statistics.speedup(baseline, candidate)
    assert blind.half_width == 0
    seeing = statistics.speedup(baseline, candidate, systematic=0.5 / 51 + 0.5 / 50)
    assert seeing.lo < 50.7 / 50.3 < seeing.hi
    assert seeing.half_width == pytest.approx(0.5 / 51 + 0.5 / 50)


def test_ranks_of_ten_pairs() -> None:
    middle, low, high = statistics.median_interval([0, 9, 1, 8, 2, 7, 3, 6, 4, 5])
    span = statistics.QUANTILE / 2 * math.sqrt(10)
    assert (middle, low, high) == pytest.approx((4.5, 4.5 - span, 4.5 + span))


@pytest.mark.parametrize(("count", "t"), [(2, 12.706), (3, 4.303)])
def test_too_few_for_ranks_fall_back_on_student(count: int, t: float) -> None:
    logs = np.asarray([0.01, -0.01, 0.0][:count])
    _, low, high = statistics.median_interval(logs)
    assert (high - low) / 2 == pytest.approx(t * logs.std(ddof=1) / math.sqrt(count))


def test_one_row_at_a_time_or_all_at_once() -> None:
    rng = np.random.default_rng(9)
    logs, first = rng.standard_normal((6, 20)), np.asarray([True, False] * 10)
    sides = (logs + np.where(first, 5, 0), rng.standard_normal((6, 20)) + np.where(first, 0, 5))
    together = statistics.median_interval(statistics.log_ratios(*sides, first))
    for row, expected in enumerate(zip(*together, strict=True)):
        alone = statistics.log_ratios(sides[0][row], sides[1][row], first)
        assert statistics.median_interval(alone) == pytest.approx(expected)


def test_wild_pairs_do_not_overflow() -> None:
    interval = statistics.speedup([1e-6, 1e9], [1e9, 1e-6])
    assert 0 < interval.lo < interval.hi < math.inf


@pytest.mark.parametrize(
    ("baseline", "candidate", "says"),
    [
        ([1.0], [1.0], "two values"),
        ([], [], "two values"),
        ([1.0, 2.0], [1.0], "2 baseline times against 1"),
        ([1.0, 0.0], [1.0, 1.0], "positive and finite"),
        ([1.0, -1.0], [1.0, 1.0], "positive and finite"),
        ([1.0, 1.0], [math.nan, 1.0], "positive and finite"),
        ([1.0, 1.0], [math.inf, 1.0], "positive and finite"),
    ],
)
def test_what_cannot_be_measured_is_refused(baseline: list[float], candidate: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        statistics.speedup(baseline, candidate)


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="no median"):
        statistics.median([])
    with pytest.raises(ValueError, match="systematic"):
        statistics.speedup([1.0, 1.0], [1.0, 1.0], systematic=-0.1)
    with pytest.raises(ValueError, match="not an interval"):
        Interval(1.0, 1.1, 1.2)


def test_ranks_beyond_the_extremes_go_on_at_the_mean_spacing() -> None:
    middle, low, high = statistics.median_interval([0.0, 1.0, 2.0, 3.0])
    # Signs about the median read - - + +: a lag-1 correlation of 1/4.
    span = statistics.QUANTILE / 2 * math.sqrt(4 * 1.25 / 0.75)
    assert (middle, low, high) == pytest.approx((1.5, 1.5 - span, 1.5 + span))
    assert low < 0
