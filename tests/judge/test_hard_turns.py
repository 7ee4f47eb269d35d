"""How the time for hard inputs is counted."""

import itertools
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


@pytest.mark.parametrize("ahead", [0, 1, 64])
def test_who_is_slow_on_hard_inputs_meets_all_of_them(ahead):
    clock = Clock()
    hard = made(clock, ahead=ahead)
    assert met(hard, clock, call_s=2.0, most=3) == 10
    assert hard.spent_s == pytest.approx(20.0)


@pytest.mark.parametrize("ahead", [1, 64])
def test_what_is_made_ahead_takes_no_time_when_it_comes(ahead):
    clock = Clock()
    hard = made(clock, each_s=0.5, budget_s=60.0, ahead=ahead)
    hard.begin()
    for number in range(1, 11):
        before_s = clock.now_s
        (call,) = hard.take()
        assert clock.now_s == before_s
        assert call.stress is SETS[number - 1]
        hard.prepare()
    assert not hard.left


@pytest.mark.parametrize("times", [{"each_s": 0.5}, {"judged_s": 0.5}, {"each_s": 0.2, "judged_s": 0.3}])
def test_what_is_done_to_make_and_to_judge_them_is_bounded(times):
    clock = Clock()
    hard = made(clock, times.get("each_s", 0.0), budget_s=3.0)
    assert met(hard, clock, call_s=0.1, judged_s=times.get("judged_s", 0.0)) == 6


def test_the_first_one_is_met_however_long_it_takes():
    clock = Clock()
    assert met(made(clock, each_s=9.0, budget_s=0.1), clock) == 1


def counted(lists):
    """How many calls come, of each of which something can be expected."""
    calls = [one for some in lists for one in some]
    for one in calls:
        one.expected()
    return len(calls)


def turned(each_s, pairs=2000, sure=4, **options):
    """How many calls come before each pair of 0.1 s, where one takes so many seconds to make; and the turns' clock."""
    clock = Clock()

    def sets():
        while True:
            clock.now_s += each_s
            yield SETS[0], Draw(inputs=(), seed=0), lambda: "something"

    turns = HardTurns(made(clock, budget_s=60.0, count=10, rounds=sets(), **options), sure, random.Random(1))
    counts = []
    for _ in range(pairs):
        counts.append(counted(turns.before_a_pair(1)))
        clock.now_s += 0.1
    return counts


def test_behind_the_sure_pairs_there_are_half_as_many_of_them():
    """Each of them takes the time of a pair, too."""
    counts = turned(0.001)
    assert sum(counts[4:]) / len(counts[4:]) == pytest.approx(LATER_SHARE, rel=0.1)


def test_behind_the_sure_pairs_they_have_a_share_of_the_time():
    counts = turned(0.4)
    assert (0.1 + 0.4) * sum(counts[4:]) == pytest.approx(LATER_SHARE * 0.1 * len(counts), rel=0.2)


@pytest.mark.parametrize("each_s", [0.001, 0.4])
def test_nothing_tells_when_the_next_one_comes(each_s):
    """No sooner after one than long after it: where it was known that there is no time for one, that could be used."""
    counts = turned(each_s, pairs=4000)[4:]
    comes = [count > 0 for count in counts]
    after = [now for before, now in itertools.pairwise(comes) if before]
    long_after = [comes[at] for at in range(3, len(comes)) if not any(comes[at - 3 : at])]
    share = sum(comes) / len(comes)
    assert sum(after) / len(after) == pytest.approx(share, abs=0.08)
    if long_after:
        assert sum(long_after) / len(long_after) == pytest.approx(share, abs=0.08)


def test_all_of_the_first_round_come_whatever_chance_has_left_over():
    clock = Clock()
    turns = HardTurns(made(clock, budget_s=60.0), 4, random.Random(1))
    count = sum(counted(turns.before_a_pair(1)) for _ in range(4))
    assert count + counted(turns.remaining(1)) == 10


@pytest.mark.parametrize("seed", range(8))
def test_where_time_is_short_they_are_spread_over_the_sure_pairs(seed):
    """Those who have seen the last one could be careless in the rest of the pairs."""
    clock = Clock()
    turns = HardTurns(made(clock, each_s=0.5, budget_s=5.0, count=33), 20, random.Random(seed))
    counts = []
    for _ in range(20):
        counts.append(counted(turns.before_a_pair(1)))
    remaining = counted(turns.remaining(1))
    assert sum(counts) + remaining == 10
    assert sum(counts[10:]) + remaining > 0


def test_where_few_sets_are_of_use_that_is_said():
    clock = Clock()
    hard = made(clock, count=2, budget_s=60.0)
    hard.count = 30
    met(hard, clock)
    assert hard.few == "of 2 of 30 something could be expected: the reference decides little there"


@pytest.mark.parametrize(
    ("takes_s", "expected", "said"),
    [
        (0.0, None, "nothing could be expected of any hard input"),
        (
            5.0,
            None,
            "nothing could be expected of any hard input that there was time for; a larger check.stress_budget_s",
        ),
        (0.0, "something", ""),
    ],
)
def test_where_none_is_of_use_that_is_said(takes_s, expected, said):
    clock = Clock()
    sets = [(stress, Draw(inputs=(), seed=0), lambda: expected) for stress in SETS[:10]]
    hard = HardInputs(iter(sets), 10, 9.0, 0.0, clock)
    met(hard, clock, judged_s=takes_s)
    assert hard.lacking.startswith(said)
    assert ("stress_budget_s" in hard.lacking) == ("stress_budget_s" in said)
    assert bool(hard.lacking) == bool(said)
