from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.stopping import Stop, StoppingRule

RULE = StoppingRule(precision=0.005, budget_s=10.0, min_pairs=10, max_pairs=200)


def decide(
    pairs: int, half_width: float | None, *, elapsed_s: float = 1.0, dropped: int = 0, systematic: float = 0.0
) -> Stop | None:
    return RULE.decide(pairs=pairs, dropped=dropped, elapsed_s=elapsed_s, half_width=half_width, systematic=systematic)


@given(st.integers(0, 9), st.floats(0, 1) | st.none(), st.floats(0, 1e6), st.integers(0, 10), st.floats(0, 1))
def test_never_before_the_minimum(
    pairs: int, half_width: float | None, elapsed_s: float, dropped: int, systematic: float
) -> None:
    assert decide(pairs, half_width, elapsed_s=elapsed_s, dropped=dropped, systematic=systematic) is None


def test_precise_once_the_interval_is_narrow() -> None:
    assert decide(10, 0.0049) is Stop.PRECISE
    assert decide(10, 0.0051) is None
    assert decide(10, None) is None


def test_precise_only_at_a_look() -> None:
    assert 11 not in RULE.looks()
    assert decide(11, 0.0001) is None


def test_the_clocks_own_error_counts_as_width() -> None:
    assert decide(20, 0.004, systematic=0.0005) is Stop.PRECISE
    assert decide(20, 0.004, systematic=0.002) is None
    # 1 % is the clock's: measuring on would take the budget and change little.
    assert decide(20, 0.006, systematic=0.01) is None
    assert decide(20, 0.004, systematic=0.01) is Stop.RESOLUTION


def test_budget_and_maximum() -> None:
    assert decide(13, None, elapsed_s=10.0) is Stop.BUDGET
    assert decide(13, None, elapsed_s=9.9) is None
    assert decide(200, 0.02) is Stop.MAX_PAIRS
    assert decide(200, 0.002) is Stop.PRECISE
    assert decide(200, None, elapsed_s=11.0) is Stop.MAX_PAIRS


def test_a_card_that_never_settles_ends_too() -> None:
    assert decide(3, None, elapsed_s=11.0, dropped=10) is None
    assert decide(3, None, elapsed_s=11.0, dropped=11) is Stop.UNUSABLE
    assert decide(3, None, elapsed_s=1.0, dropped=396) is None
    assert decide(3, None, elapsed_s=1.0, dropped=397) is Stop.UNUSABLE
    assert decide(30, None, elapsed_s=1.0, dropped=370) is Stop.MAX_PAIRS


@given(st.integers(2, 100), st.integers(0, 400))
def test_looks_rise_are_even_and_end_at_the_maximum(least: int, more: int) -> None:
    rule = StoppingRule(precision=0.01, budget_s=1.0, min_pairs=least, max_pairs=least + more)
    looks = rule.looks()
    assert list(looks) == sorted(set(looks))
    assert looks[0] >= least
    assert looks[-1] == least + more
    assert all(count % 2 == 0 and count >= 6 for count in looks[:-1])
    assert len(looks) < 40


def test_looks_of_the_default() -> None:
    assert RULE.looks() == (10, 12, 16, 20, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"precision": 0.0}, "positive"),
        ({"budget_s": -1.0}, "positive"),
        ({"min_pairs": 1}, "min_pairs cannot be 1"),
        ({"max_pairs": 9}, "below min_pairs"),
    ],
)
def test_bounds_that_make_no_sense(change: dict[str, Any], says: str) -> None:
    bounds: dict[str, Any] = {"precision": 0.005, "budget_s": 10.0, "min_pairs": 10, "max_pairs": 200}
    with pytest.raises(ValueError, match=says):
        StoppingRule(**(bounds | change))
