import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing import statistics
from harness.timing.statistics import Interval
from harness.timing.verdicts import BETWEEN_RUNS, Standing, compare

OPPOSITE = {Standing.FASTER: Standing.SLOWER, Standing.SLOWER: Standing.FASTER}


def around(value: float, half_width: float) -> Interval:
    return Interval(value, value * math.exp(-half_width), value * math.exp(half_width))


intervals = st.builds(around, st.floats(0.01, 100), st.floats(0, 0.5))


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (around(2.0, 0.003), around(2.1, 0.003), Standing.FASTER),
        (around(2.0, 0.003), around(1.9, 0.003), Standing.SLOWER),
        (around(2.0, 0.003), around(2.002, 0.003), Standing.SAME),
        (around(2.0, 0.05), around(2.002, 0.05), Standing.CANT_TELL),
        (around(2.0, 0.05), around(2.1, 0.05), Standing.CANT_TELL),
        # Told apart, but by nothing that matters.
        (around(2.0, 0.0005), around(2.01, 0.0005), Standing.SAME),
        (around(2.0, 0.0005), around(2.02, 0.0005), Standing.FASTER),
    ],
)
def test_rule(first: Interval, second: Interval, verdict: Standing) -> None:
    assert compare(first, second).verdict is verdict


def test_widths_combine_as_root_of_squares() -> None:
    found = compare(around(1.0, 0.03), around(1.0, 0.04))
    assert found.ratio.half_width == pytest.approx(math.hypot(0.05, BETWEEN_RUNS))
    assert compare(around(1.0, 0.0), around(1.0, 0.0)).ratio.half_width == pytest.approx(BETWEEN_RUNS)


@given(intervals, intervals)
def test_swapping_runs_turns_the_verdict(first: Interval, second: Interval) -> None:
    there, back = compare(first, second), compare(second, first)
    assert back.ratio.value == pytest.approx(1 / there.ratio.value)
    assert back.ratio.half_width == pytest.approx(there.ratio.half_width)
    assert back.verdict is OPPOSITE.get(there.verdict, there.verdict)


FIGURES = st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False)


@given(*[st.lists(FIGURES, min_size=3, max_size=3).map(sorted)] * 2)
def test_figures_of_any_size_are_compared(first: list[float], second: list[float]) -> None:
    found = compare(*(Interval(value, lo, hi) for lo, value, hi in (first, second)))
    assert 0 < found.ratio.lo <= found.ratio.value <= found.ratio.hi < math.inf


@given(intervals)
def test_a_run_is_never_slower_or_faster_than_itself(only: Interval) -> None:
    assert compare(only, only).verdict in (Standing.SAME, Standing.CANT_TELL)


def test_equal_kernels_in_two_runs_are_hardly_ever_told_apart() -> None:
    rng = random.Random(1)

    def run() -> Interval:
        noise = [[math.exp(rng.gauss(0, 0.005)) for _ in range(40)] for _ in range(2)]
        return statistics.speedup(noise[0], noise[1])

    verdicts = [compare(run(), run()).verdict for _ in range(300)]
    assert sum(verdict in OPPOSITE for verdict in verdicts) <= 6
    assert verdicts.count(Standing.SAME) > 150


def test_each_end_of_the_ratio_takes_the_ends_that_make_it() -> None:
    # The first may be much larger than it reads, the second much smaller: the ratio may be lower, hardly higher.
    first, second = Interval(1.0, 0.99, 1.3), Interval(1.0, 0.8, 1.02)
    ratio = compare(first, second).ratio
    assert math.log(ratio.lo) == pytest.approx(-math.hypot(math.log(1 / 0.8), math.log(1.3), BETWEEN_RUNS))
    assert math.log(ratio.hi) == pytest.approx(math.hypot(math.log(1.02), math.log(1 / 0.99), BETWEEN_RUNS))
