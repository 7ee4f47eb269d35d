"""benchmarks/training_step.py: how its candidates are made, and its simulation of other fleets."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.training_step import KINDS, Row, at_hand, made, simulation


def row(problem="p", build_s=0.0, device_s=1.0, opened_s=0.0):
    return Row(problem, "right", "passed", 0.0, build_s, device_s, opened_s, 0.0)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_each_candidate_is_another_file(kind):
    problems = at_hand(kind, 16)
    assert len(problems) >= 10
    for texts in problems.values():
        found = [made(text, what, number) for number, what in enumerate(KINDS) for text in texts]
        assert len(set(found)) == len(found)
        assert all(ast.parse(text) for text in found)


@pytest.mark.parametrize(
    ("rows", "turns", "devices", "builders", "seconds"),
    [
        ([row()] * 6, 1, 1, 1, 6.0),
        ([row()] * 6, 1, 3, 1, 2.0),
        # Turns wait for each other.
        ([row(problem) for problem in "ab" for _ in range(3)], 3, 6, 1, 3.0),
        # Few of one problem stay where it is open.
        ([row()] * 6, 3, 6, 1, 6.0),
        # The next is built while the last is evaluated.
        ([row(build_s=1.0)] * 3, 1, 1, 1, 4.0),
        # Each problem is opened once where its device stays with it.
        ([row(problem, opened_s=opened) for problem in "ab" for opened in (5.0, 0.0)], 1, 1, 4, 14.0),
        ([row(problem, opened_s=opened) for problem in "ab" for opened in (5.0, 0.0)], 1, 2, 4, 7.0),
    ],
)
def test_the_simulation_of_a_step_that_can_be_counted_by_hand(rows, turns, devices, builders, seconds):
    assert simulation(rows, turns, devices, builders) == pytest.approx(seconds)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=20),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
)
@settings(deadline=None)
def test_no_fleet_is_quicker_than_its_devices_and_builders_can_be(drawn, turns, devices, builders):
    rows = [row(problem, build_s, device_s) for problem, build_s, device_s in drawn]
    took = simulation(rows, turns, devices, builders)
    assert took >= sum(one.device_s for one in rows) / devices - 1e-6
    assert took >= sum(one.build_s for one in rows) / builders - 1e-6
    assert took <= sum(one.device_s + one.build_s for one in rows) + 1e-6
