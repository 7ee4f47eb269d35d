import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing import company, statistics
from harness.timing.company import Alone, Usual, own_wait, slow_baseline

ALONE = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 100.2]


def test_times_that_are_alike_raise_no_suspicion():
    assert slow_baseline(ALONE, [x * 1.04 for x in ALONE], slack_us=0.0) is None
    assert slow_baseline([x * 3 for x in ALONE], ALONE, slack_us=0.0) is None


def test_a_baseline_that_is_slower_in_company_is_told_by_how_much():
    found = slow_baseline(ALONE, [x * 2 for x in ALONE], slack_us=0.0)
    assert found.word == "slow_baseline"
    assert found.evidence["factor"] == pytest.approx(0.5)
    assert "200.0 us beside this candidate and 100.0 us alone" in found.message


def test_the_clock_s_own_error_is_granted():
    assert slow_baseline(ALONE, [x * 2 for x in ALONE], slack_us=100.0) is None


def test_noise_is_not_taken_for_it():
    noisy = [90.0, 400.0, 100.0, 110.0, 95.0, 300.0, 105.0]
    assert slow_baseline(ALONE, noisy, slack_us=0.0) is None


def test_a_few_readings_prove_nothing():
    assert slow_baseline(ALONE[:4], [500.0] * 9, slack_us=0.0) is None


def test_what_a_first_call_takes_longer_is_shared_by_a_burst():
    usual = Usual([20.0, 21.0, 22.0], [17.0, 18.0, 19.0])
    assert usual.a_call(1) == usual.single_us
    assert usual.a_call(6) == [17.5, 18.5, 19.5]
    assert Usual([20.0], []).a_call(6) == [20.0]


def test_slower_is_seen_with_and_without_the_gate():
    gated = Usual([24.0 + i % 3 for i in range(9)], [20.0 + i % 3 for i in range(9)])
    ungated = Usual([300.0 + i % 5 for i in range(9)], [])
    usual = Alone(gated, ungated)
    assert not usual.slower(usual)
    assert usual.slower(Alone(twice(gated), ungated))
    assert usual.slower(Alone(gated, twice(ungated)))
    assert not usual.slower(Alone())
    assert not Alone(twice(gated), ungated).slower(usual)


def twice(usual):
    return Usual([value * 2 for value in usual.single_us], [value * 2 for value in usual.burst_us])


@pytest.mark.parametrize(
    ("gated", "together", "candidate", "speedup"),
    [
        # What is over the launches only is none.
        (10.0, 2700.0, 1500.0, 1.0),
        # What is over the work as well is one.
        (2000.0, 2700.0, 1500.0, 2000 / 1500),
        # Slower is slower, and as fast is as fast.
        (10.0, 1500.0, 1600.0, 1500 / 1600),
        (1600.0, 1600.0, 1500.0, 1600 / 1500),
    ],
)
def test_a_candidate_does_not_gain_by_choosing_to_wait(gated, together, candidate, speedup):
    found = own_wait([gated] * 5, [together] * 5, [candidate] * 5)
    factor = found.evidence["factor"] if found else 1.0
    assert together * factor / candidate == pytest.approx(speedup)


def test_where_the_baseline_has_no_gate_either_waiting_is_no_choice():
    assert own_wait([], [2700.0] * 5, [1500.0] * 5) is None


@given(
    pairs=st.lists(st.tuples(st.floats(1.0, 1e4), st.floats(1.0, 1e4)), min_size=1, max_size=30),
    most=st.floats(1.0, 1e4),
)
def test_no_pair_credits_more_than_what_is_tolerated_unless_both_sides_were_slow(pairs, most):
    baseline_us, candidate_us = (list(side) for side in zip(*pairs, strict=True))
    credited = company.held_to(most, baseline_us, candidate_us)
    usual = statistics.median(candidate_us)
    for us, own, counts in zip(baseline_us, candidate_us, credited, strict=True):
        assert counts <= us
        assert counts / own <= most / min(own, usual) * (1 + 1e-9)


def test_what_slows_both_sides_of_a_pair_is_nobody_s_gain():
    assert company.held_to(105.0, [100.0, 200.0, 100.0], [50.0, 100.0, 50.0]) == [100.0, 200.0, 100.0]
    assert company.held_to(105.0, [100.0, 200.0, 200.0], [50.0, 50.0, 40.0]) == [100.0, 105.0, 105.0]


def test_a_few_readings_limit_nothing():
    assert company.most_us([100.0] * 4, slack_us=0.0) == math.inf
    assert company.most_us([100.0] * 5, slack_us=1.0) == pytest.approx(106.0)
