from dataclasses import replace

import pytest
import torch
from torch import nn

from harness.oracle import auditing, controls
from harness.oracle.oracle import Oracle
from harness.oracle.promises import find
from harness.oracle.stress import SETS, named
from tests.oracle.references import GemmTail, Of, attention, heads

PROBLEMS = {
    "attention": (attention, lambda: heads(torch.randn, 2, 2, 64, 64)),
    "attention, uniform": (attention, lambda: heads(torch.rand, 2, 2, 64, 64)),
    "gemm, norm, softmax": (lambda: GemmTail(64), lambda: [torch.randn(32, 64)]),
    "convolution": (lambda: nn.Conv2d(4, 8, 3), lambda: [torch.randn(2, 4, 10, 10)]),
    "loss": (lambda: nn.CrossEntropyLoss(), lambda: [torch.randn(64, 10), torch.randint(10, (64,))]),
    "argmax": (lambda: Of(lambda x: x.argmax(-1)), lambda: [torch.randn(64, 50)]),
    "two outputs": (lambda: Of(lambda x: x.topk(3, -1)), lambda: [torch.randn(64, 50)]),
    "relu": (lambda: nn.ReLU(), lambda: [torch.randn(20, 30)]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_sound_problem_judges_every_control_rightly(name):
    make, draw = PROBLEMS[name]
    oracle = Oracle(make())
    inputs = [draw(), draw()]
    first, second = oracle.glance(inputs[0]).native, oracle.expect(inputs[1])
    sets = [("drawn", second)] + [(s.name, e) for s, e in oracle.stress(inputs[1]) if s.binding]
    made = [*controls.negative(oracle.reference, first), *controls.positive(oracle.reference)]
    tried = list(controls.try_all(oracle, made, sets))
    assert [t.control.name for t in tried if not t.as_it_should] == []
    assert len({t.control.name for t in tried if t.finding}) > 6


def test_a_problem_that_cannot_tell_is_found_out():
    """Its output hardly depends on its input."""
    oracle = Oracle(Of(lambda x: (x.mean() * 0 + torch.ones(8, 64)).half()))
    first, second = oracle.glance([torch.randn(8, 64)]).native, oracle.expect([torch.randn(8, 64)])
    tried = controls.try_all(oracle, controls.negative(oracle.reference, first), [("drawn", second)])
    names = {t.control.name for t in tried if t.finding}
    # What comes out as the reference's own output is no control at all.
    assert not names & {"earlier_output", "constant", "mean_of_axis_0"}


def test_reordered_sums_are_another_kernel():
    reference = Oracle(nn.Linear(256, 64)).reference
    x = torch.randn(32, 256)
    reordered = next(c for c in controls.positive(reference) if c.name == "reordered_sums")
    expected = Oracle(reference.module).expect([x])
    got = reordered.make(expected)
    assert not torch.equal(got, expected.native)
    assert torch.allclose(got, expected.native, atol=1e-5)


def test_what_is_right_on_drawn_inputs_alone_is_tried_on_others():
    oracle = Oracle(Of(lambda x: (x - 100).relu()))
    draws = [[torch.rand(64, 50)], [torch.rand(64, 50)]]
    other, expected = oracle.glance(draws[0]).native, oracle.expect(draws[1])
    sets = auditing.drawn_first(expected, auditing.binding(oracle.stress(draws[1])))
    found, decisive = auditing.decisive(oracle, other, sets)
    (zeros,) = [one for one in found if one.control.name == "zeros"]
    assert zeros.refused_on in decisive
    assert "unshifted" not in {one.control.name for one in found}


def _remembered(z, i, f, o):
    """The last state of a memory that forgets nearly all of each step before: `f` is the share that stays."""
    state = torch.zeros_like(z[:, 0])
    for step in range(z.shape[1]):
        state = (f[:, step] - 4).sigmoid() * state + i[:, step].sigmoid() * z[:, step].tanh()
    return state * o[:, -1].sigmoid()


def test_what_is_right_bit_for_bit_on_drawn_inputs_is_tried_on_others():
    """The first quarter of the steps is nothing beside the last one, as long as the inputs are drawn."""
    oracle = Oracle(Of(_remembered))
    draws = [[torch.randn(2, 64, 8) for _ in range(4)] for _ in range(2)]
    assert torch.equal(_remembered(*draws[1]), _remembered(*(one[:, 16:] for one in draws[1])))
    other, expected = oracle.glance(draws[0]).native, oracle.expect(draws[1])
    some = [replace(named("held"), turn=turn) for turn in range(4)]
    sets = auditing.drawn_first(expected, auditing.binding(oracle.stress(draws[1], 0, some)))
    found, decisive = auditing.decisive(oracle, other, sets)
    assert "held" in decisive
    assert {one.refused_on for one in found if one.control.name == "part_of_axis_1"} == {"held"}


def _looked_up(x):
    return torch.arange(101.0)[(x.softmax(-1) * 100).round().long()]


def _into_an_output(x):
    out = x.new_empty(x.shape[0])
    return torch.logsumexp(x, 1, out=out)


PARTICULAR = {
    "checks probabilities": lambda x: torch.distributions.Categorical(probs=x.softmax(-1)).entropy(),
    "looks up places": _looked_up,
    "writes to an output": _into_an_output,
    "checks a simplex": lambda x: torch.distributions.Dirichlet(torch.full((50,), 2.0)).log_prob(x.softmax(-1)),
}


@pytest.mark.parametrize("name", PARTICULAR)
def test_a_reference_that_does_not_take_what_a_control_gives_it_is_no_fault(name):
    oracle = Oracle(Of(PARTICULAR[name]))
    draws = [[torch.randn(64, 50)], [torch.randn(64, 50)]]
    other, expected = oracle.glance(draws[0]).native, oracle.expect(draws[1])
    sets = auditing.drawn_first(expected, auditing.binding(oracle.stress(draws[1])))
    found, _ = auditing.decisive(oracle, other, sets)
    assert "zeros" in {one.control.name for one in found}


def test_what_a_reference_checks_is_kept_where_growth_is_looked_at():
    def draw():
        return [torch.randn(64, 50), torch.randn(64, 50).softmax(-1)]

    def checked(rewards, p):
        if not torch.allclose(p.sum(-1), torch.ones(len(p)), atol=1e-2):
            raise ValueError("no probabilities")
        return (p * rewards).sum(-1)

    first = draw()
    oracle = Oracle(Of(checked), promises=find(first, draw))
    oracle.expect(first)
    tried = {stress.name for stress, _ in oracle.stress(first)}
    assert "huge_above" in tried
    assert not {"huge_above", "huge_below", "one_huge"} & oracle.undefined.keys()


def audited(function, *shape, sets=SETS):
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(function)), [torch.randn(shape)]
    expected, other = oracle.expect(drawn), oracle.glance([torch.randn(shape)]).native
    tried = auditing.negative(
        oracle, other, auditing.drawn_first(expected, auditing.binding(oracle.stress(drawn, 0, sets)))
    )
    return {one.control.name: one.refused_on for one in tried}


def test_the_best_few_of_each_strand_are_a_known_wrong_answer():
    assert audited(lambda x: x.topk(8, 1), 512, 1024)["best_few_of_strands"] == "in_one_strand"


def test_an_audit_says_that_no_set_tells_of_it():
    few = [one for one in SETS if one.name in ("signs", "rolled")]
    assert audited(lambda x: x.topk(8, 1), 512, 1024, sets=few)["best_few_of_strands"] == ""


@pytest.mark.parametrize("function", [lambda x: x.topk(3), lambda x: x.argmax(-1), lambda x: x.softmax(-1)])
def test_where_a_strand_has_all_of_the_best_it_is_none(function):
    assert "best_few_of_strands" not in audited(function, 64, 256, sets=())
