"""What is taken off a clock's readings."""

import pytest

from harness.timing.burst_clock import BurstClock
from harness.timing.bursts import BurstPlan
from harness.timing.fixed_cost import FixedCost

CALIBRATED = FixedCost(60.0, 2.0, 5.0)


@pytest.mark.parametrize(
    ("candidate", "baseline", "on_gpu", "taken_off_us"),
    [
        (8, 8, False, 60.0),
        (1, 8, False, 60.0),
        # Whoever answers a message faster would gain.
        (1, 1, False, 0.0),
        (1, 1, True, 60.0),
    ],
)
def test_nothing_is_taken_off_single_calls_on_the_cpu(candidate, baseline, on_gpu, taken_off_us):
    clock = BurstClock(CALIBRATED, on_card=on_gpu, late="")
    clock.bursts = {"candidate": BurstPlan(candidate, candidate), "baseline": BurstPlan(baseline, baseline)}
    assert clock.fixed_cost.us == taken_off_us


@pytest.mark.parametrize(("kernels", "least", "most"), [(1, 0.0045, 0.006), (22, 0.065, 0.075)])
def test_processes_differ_by_each_kernel_that_a_call_runs(kernels, least, most):
    # Two copies of a reference of 22 kernels and 57 us were 6.7 % apart on an H200.
    clock = BurstClock(CALIBRATED, on_card=True, late="")
    clock.bursts = {"candidate": BurstPlan(32, 24), "baseline": BurstPlan(32, 24)}
    clock.burst_us = {"candidate": 32 * 57.0, "baseline": 32 * 57.0}
    clock.kernels = {"candidate": kernels, "baseline": 1}
    assert least < clock.systematic < most


@pytest.mark.parametrize("on_card", [True, False])
def test_two_times_that_are_too_short_for_the_clock_have_no_narrow_ratio(on_card):
    # Seen on an H100 beside other lanes: fixed 310 us, jitter 1388 us, and every reading of both sides at the latter.
    clock = BurstClock(FixedCost(310.0, 1388.0, 500.0), on_card=on_card, late="")
    clock.bursts = {"candidate": BurstPlan(2, 2), "baseline": BurstPlan(2, 2)}
    clock.burst_us = {"candidate": 1388.0, "baseline": 1388.0}
    assert clock.systematic > 0.9
    clock.burst_us = {"candidate": 1e6, "baseline": 1e6}
    assert clock.systematic < 0.03
