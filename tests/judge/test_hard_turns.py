"""How the time for hard inputs is counted."""

import random

import pytest

from harness.judge.hard_turns import HardInputs, HardTurns
from harness.links.link import Draw
from harness.oracle.stress import SETS


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def made(clock, each_s=0.0, budget_s=1.5, count=10, **options):
    """So many sets, each of which takes `each_s` to make."""

    def sets():
        for stress in SETS[:count]:
            clock.now_s += each_s
            yield stress, Draw(inputs=(), seed=0), lambda: "something"

    return HardInputs(sets(), count, budget_s, 0.0, clock, **options)


def met(hard, clock, call_s=0.0, judged_s=0.0, most=1):
    """How many calls come of it, each of which takes the candidate `call_s`, and to judge `judged_s`."""
    calls = 0
    for some in HardTurns(hard, 4, random.Random(1)).remaining(most):
        clock.now_s += call_s * len(some)
        for one in some:
            with one.charged():
                one.expected()
                clock.now_s += judged_s
        calls += len(some)
    return calls


@pytest.mark.parametrize("together", [False, True])
def test_who_is_slow_on_hard_inputs_meets_all_of_them(together):
    clock = Clock()
    hard = made(clock, together=together)
    assert met(hard, clock, call_s=2.0, most=3) == 10
    assert hard.spent_s == pytest.approx(20.0)


@pytest.mark.parametrize("times", [{"each_s": 0.5}, {"judged_s": 0.5}, {"each_s": 0.2, "judged_s": 0.3}])
def test_what_is_done_to_make_and_to_judge_them_is_bounded(times):
    clock = Clock()
    hard = made(clock, times.get("each_s", 0.0), budget_s=3.0)
    assert met(hard, clock, call_s=0.1, judged_s=times.get("judged_s", 0.0)) == 6


def test_the_first_one_is_met_however_long_it_takes():
    clock = Clock()
    assert met(made(clock, each_s=9.0, budget_s=0.1), clock) == 1
