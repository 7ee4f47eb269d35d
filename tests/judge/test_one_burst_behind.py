"""On a card a burst's answers are compared while the next one's calls are enqueued, and inputs are drawn then."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from harness.judge.bench import Bench
from harness.judge.drawn_ahead import DrawnAhead, most_ahead
from harness.judge.endings import Refused
from harness.judge.examiner import Wrong
from harness.links.link import RunnerFailed, nothing
from harness.oracle.verdict import Finding
from harness.records import Status
from harness.wire.messages import Failed
from tests.judge.test_bench import RULE, Card, alone, given

WRONG = Finding(Status.INCORRECT, "mismatch", "it is wrong")


class Told(Card):
    """Notes when its bursts are enqueued and when they are over. May fail from the time on that `fails` says so."""

    def __init__(self, name, told, **options):
        super().__init__(20.0, 18.0, **options)
        self.name, self.told, self.fails = name, told, False

    def burst(self, draws, *, meanwhile=nothing, **options):
        if self.fails:
            raise RunnerFailed(Failed(phase="call", exception="ValueError", text="no", line=0))
        self.told.append(f"{self.name} is enqueued")
        meanwhile()
        reading = super().burst(draws, **options)
        self.told.append(f"{self.name} is over")
        return reading


def made(is_wrong=lambda side, told: False, device="cuda"):
    """A bench, what is told of its bursts and looks, and its links."""
    told = []
    links = {side: Told(side, told) for side in ("baseline", "candidate")}
    before = alone(Card(20.0, 18.0))
    problem, _, _ = given(**links)
    problem.reference.device = SimpleNamespace(type=device)

    def examiner(side):
        def wrong(answers):
            told.append(f"{side} is compared")
            return Wrong(answers[0], WRONG) if is_wrong(side, told) else None

        def at_once(link, draws, hard, only):
            told.append(f"{side} is compared at once")

        return SimpleNamespace(
            answers=lambda link, draws, only: draws, wrong=wrong, burst=at_once, asked_again=lambda _, one: one.finding
        )

    bench = Bench(problem, {side: examiner(side) for side in links}, links, before)
    bench.warm_up()
    del told[:]
    return bench, told, links


def test_each_burst_is_compared_while_the_next_one_is_enqueued_and_the_last_one_at_the_end():
    bench, told, _ = made()
    bench.sample(RULE)
    bursts = told.count("baseline is over") + told.count("candidate is over")
    assert sum(one.endswith("is compared") for one in told) == bursts
    assert not any(one.endswith("at once") for one in told)
    after = [before for before, now in itertools.pairwise(told) if now.endswith("is compared")]
    # At the end of the pairs, and of the single calls that were still wanting.
    assert sum(before.endswith("is over") for before in after) in (1, 2)
    assert told[-1].endswith("is compared")


def test_outside_of_sampling_it_is_compared_at_once():
    bench, told, _ = made()
    bench.singles("candidate", 2)
    assert told == ["candidate is enqueued", "candidate is over", "candidate is compared at once"] * 2


def test_on_the_cpu_it_always_is():
    bench, told, _ = made(device="cpu")
    bench.sample(RULE)
    assert not any(one.endswith("is compared") for one in told)


@pytest.mark.parametrize("which", [1, 3, 17])
def test_a_wrong_answer_is_refused_when_the_burst_that_is_under_way_is_over(which):
    bench, told, _ = made(lambda side, told: told.count("candidate is compared") == which and side == "candidate")
    with pytest.raises(Refused) as refused:
        bench.sample(RULE)
    assert refused.value.ending.outcome.message == "it is wrong"
    assert told.count("candidate is compared") == which
    assert told[-1].endswith("is over")


def test_so_is_the_last_one_of_all():
    bench, _, _ = made(lambda side, told: told[-2].endswith("is over"))
    with pytest.raises(Refused):
        bench.sample(RULE)


def test_it_is_refused_for_its_answer_also_where_the_next_burst_fails():
    bench, told, links = made(lambda side, told: side == "candidate")
    usual = links["candidate"].burst

    def once(draws, **options):
        reading = usual(draws, **options)
        links["candidate"].fails = links["baseline"].fails = True
        return reading

    links["candidate"].burst = once
    with pytest.raises(Refused) as refused:
        bench.sample(RULE)
    assert refused.value.ending.outcome.message == "it is wrong"
    assert told[-1] == "candidate is compared"


def test_what_goes_wrong_meanwhile_does_not_leave_the_burst_unfinished():
    bench, told, _ = made()

    def refill(calls):
        raise torch.OutOfMemoryError("no room")

    bench.problem.ahead.refill = refill
    with pytest.raises(torch.OutOfMemoryError):
        bench.sample(RULE)
    assert told[1].endswith("is over")


def drawn_ahead(most):
    numbers = itertools.count()
    return DrawnAhead(SimpleNamespace(draw=lambda: next(numbers)), most)


@pytest.mark.parametrize("most", [0, 2, 8])
def test_fresh_draws_are_never_the_same_twice(most):
    ahead = drawn_ahead(most)
    found = []
    for calls in (1, 4, 3):
        found += [ahead.fresh() for _ in range(calls)]
        ahead.refill(calls)
    assert len(set(found)) == len(found) == 8
    assert not set(found) & set(ahead.again(5))


def test_the_baseline_has_the_same_ones_again_as_far_as_there_is_room():
    ahead = drawn_ahead(3)
    first, again = ahead.again(5), ahead.again(5)
    assert (first[:3], len(set(first))) == (again[:3], 5)
    assert not set(first[3:]) & set(again[3:])
    assert drawn_ahead(0).again(1) != []


def test_none_waits_on_the_cpu_and_few_large_ones_on_a_card():
    plan = SimpleNamespace(most_calls=32, call_bytes=1 << 24)
    on = {kind: SimpleNamespace(device=SimpleNamespace(type=kind)) for kind in ("cpu", "cuda")}
    assert (most_ahead(on["cpu"], plan), most_ahead(on["cuda"], plan)) == (0, 4)
