"""How the time for hard inputs is counted."""

import random

import pytest

from harness.judge.hard_turns import LATER_SHARE, HardInputs, HardTurns
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


@pytest.mark.parametrize("each_s", [0.001, 0.1])
def test_they_go_on_behind_the_sure_pairs_for_a_share_of_the_time(each_s):
    clock = Clock()

    def sets():
        while True:
            clock.now_s += each_s
            yield SETS[0], Draw(inputs=(), seed=0), lambda: "something"

    turns = HardTurns(made(clock, budget_s=60.0, count=10, rounds=sets()), 4, random.Random(1))
    counts, began_s, hard_s = [], 0.0, 0.0
    for pair in range(40):
        if pair == 4:
            began_s, hard_s = clock.now_s, 0.0
        before_s = clock.now_s
        counts.append(sum(len(some) for some in turns.before_a_pair(True, 1)))
        hard_s += clock.now_s - before_s
        clock.now_s += 0.1
    assert sum(counts[:4]) == 10
    assert min(sum(counts[first : first + 9]) for first in range(4, 32)) > 0
    assert hard_s <= LATER_SHARE * (clock.now_s - began_s - hard_s) + each_s
    # No more of them in a pair than before.
    assert max(counts[4:]) <= 2 * 10 / 4 + 1


def test_where_few_sets_are_of_use_that_is_said():
    clock = Clock()
    hard = made(clock, count=2, budget_s=60.0)
    hard.count = 30
    met(hard, clock)
    assert hard.few == "of 2 of 30 something could be expected: the reference decides little there"
