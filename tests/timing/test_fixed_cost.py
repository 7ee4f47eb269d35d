import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.fixed_cost import FixedCost, calibrate


def test_calibration_finds_cost_and_jitter_despite_outliers() -> None:
    rng = random.Random(1)
    readings = [284 + rng.gauss(0, 1) for _ in range(38)] + [900.0, 1200.0]
    cost = calibrate(readings)
    assert cost.us == pytest.approx(283.7, abs=0.5)
    # A quarter of them are no longer.
    assert sum(reading <= cost.us for reading in readings) == 10
    clean = calibrate(readings[:38], model_error_us=3.0)
    assert clean.jitter_us == pytest.approx(1.0, abs=0.4)
    assert clean.error_us == pytest.approx(3 + 2 * 1.2533 * clean.jitter_us / 38**0.5, rel=0.001)


def test_subtraction() -> None:
    cost = FixedCost(us=284.0, jitter_us=1.0, error_us=0.4)
    assert cost.per_call(1084.0, 16) == 50.0
    # Not to be told from nothing: reads as the jitter, so never zero or less.
    assert cost.per_call(284.2, 1) == 1.0
    assert cost.per_call(280.0, 4) == 0.25


@given(st.floats(0, 1e9), st.integers(1, 1000), st.floats(0, 1e4), st.floats(0, 100), st.floats(0, 100))
def test_a_time_is_positive_and_bursts_add_up(
    burst: float, calls: int, fixed: float, jitter: float, error: float
) -> None:
    cost = FixedCost(fixed, jitter, error)
    time = cost.per_call(burst, calls)
    assert time > 0
    assert time * calls >= burst - fixed - 1e-6


def test_an_error_of_the_fixed_cost_cancels_between_equal_bursts() -> None:
    cost = FixedCost(us=284.0, jitter_us=1.0, error_us=3.0)
    assert cost.systematic(5000.0, 5000.0) == 0
    assert cost.systematic(5000.0, 1000.0) == pytest.approx(3 / 1000 - 3 / 5000)
    # And it bounds what happens: both sides 3 us off.
    seen = (5003.0 / 1003.0) / (5000.0 / 1000.0)
    assert abs(seen - 1) <= cost.systematic(5000.0, 1000.0)


def test_ticks_do_not_cancel() -> None:
    assert FixedCost(0.0, 0.0, 0.0).systematic(100.0, 100.0, tick_us=0.5) == pytest.approx(0.005)


def test_what_is_near_the_jitter_is_not_resolved() -> None:
    cost = FixedCost(us=284.0, jitter_us=1.0, error_us=3.0)
    assert not cost.resolves(11.0)
    assert cost.resolves(13.0)


@pytest.mark.parametrize("readings", [[], [1.0] * 4, [1.0] * 5 + [float("nan")], [1.0] * 5 + [-1.0]])
def test_bad_calibration_is_refused(readings: list[float]) -> None:
    with pytest.raises(ValueError, match="null burst"):
        calibrate(readings)


def test_other_refusals() -> None:
    cost = calibrate([284.0] * 10)
    with pytest.raises(ValueError, match="0 calls"):
        cost.per_call(300.0, 0)
    with pytest.raises(ValueError, match="takes time"):
        cost.systematic(0.0, 100.0)
