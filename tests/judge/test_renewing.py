"""Inputs that a candidate has met are made anew for the next one."""

import itertools

import pytest
import torch

from harness.config import CheckConfig, TimingConfig
from harness.judge import planning, tried_inputs
from harness.judge.examiner import Examiner
from harness.judge.reference import Reference
from harness.machine.card_turns import CardTurns
from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
from harness.records import Status
from harness.wire import values
from harness.wire.messages import CandidateSource

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.rand({shape})]

def get_init_inputs():
    return []
"""
GATED = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Parameter(torch.zeros(96))

    def forward(self, x):
        gated = x * self.gate
        return gated / gated.norm(dim=-1, keepdim=True)

def get_inputs():
    return [torch.randn(64, 96)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def opened(tmp_path):
    def make(expression, shape="32, 96", options=None):
        path = tmp_path / "problem.py"
        path.write_text(PROBLEM.format(expression=expression, shape=shape))
        source = CandidateSource(path=str(path), entries=("Model",))
        reference = Reference(source, "float32", torch.device("cpu"), seed=7)
        plan = planning.workload(reference, TimingConfig(), 600.0)
        return Examiner(reference, (), options or CheckConfig(), plan, CardTurns())

    return make


def tried(judge):
    """The sets that one candidate meets, and its inputs; what to expect of them is asked after each call."""
    return [(stress, draw) for stress, draw, expect in judge.tried.stress_sets() if expect() is not None]


def met(judge):
    """What one candidate meets of hard inputs, by set."""
    return {stress.name: digest(draw) for stress, draw in tried(judge)}


def digest(draw):
    return [tensor.double().sum().item() for tensor in values.tensors(draw.inputs)]


def test_the_next_candidate_meets_others_as_far_as_there_is_time(opened):
    judge = opened("x.softmax(-1)")
    assert list(judge.tried.renewing()) == []
    first = met(judge)
    steps = judge.tried.renewing()
    enough = [next(steps) for _ in range(tried_inputs.RENEWED)]
    assert enough == [False] * (tried_inputs.RENEWED - 1) + [True]
    second = met(judge)
    assert sum(first[name] != second[name] for name in first) >= tried_inputs.RENEWED - 1
    assert list(judge.tried.renewing())
    third = met(judge)
    changed = [name for name in first if first[name] != third[name]]
    # What is the same in every draw has no other.
    assert len(changed) >= len(first) - 3


def test_the_same_candidate_meets_what_it_was_refused_on_again(opened):
    judge = opened("x.softmax(-1)")
    first = tried(judge)
    stress, draw = next(one for one in first[::-1] if one[0].name == "rolled")
    judge.tried.refused_on(draw)
    list(judge.tried.renewing(again=True))
    again = tried(judge)
    assert again[0][0] is stress
    assert digest(again[0][1]) == digest(draw)
    assert sum(digest(one) != digest(other) for (_, one), (_, other) in zip(first, again, strict=True)) > 6
    list(judge.tried.renewing())
    assert digest(draw) not in met(judge).values()


def test_nothing_tells_a_hard_call_by_what_others_had(opened):
    judge = opened("x.softmax(-1)")
    draws = [draw for _, draw in tried(judge)]
    assert len({draw.seed for draw in draws}) == len(draws)
    # Rows that a set leaves as they were drawn are those of no other set.
    rows = [{tuple(row.tolist()) for row in draw.inputs[0]} for draw in draws]
    drawn = [those for those in rows if len(those) == 32]
    assert len(drawn) > 4
    assert not any(one & other for one, other in itertools.combinations(drawn, 2))


def test_what_to_expect_is_found_out_behind_a_call(opened, monkeypatch):
    """Before it, whoever waits for that call would know by it."""
    judge = opened("x.softmax(-1)", options=CheckConfig(stress_budget_s=0.0))
    asked = []
    expect = Oracle.expect_stress
    monkeypatch.setattr(Oracle, "expect_stress", lambda *given: asked.append(1) or expect(*given))
    for count, (_, _, expected) in enumerate(judge.tried.stress_sets()):
        assert len(asked) <= count
        expected()
    assert len(asked) > 10


def test_more_rounds_are_of_other_draws(opened):
    judge = opened("x.softmax(-1)")
    first, names = [digest(draw) for _, draw in tried(judge)], {stress.name for stress, _ in tried(judge)}
    more = list(itertools.islice(judge.tried.rounds(), 4 * len(names)))
    assert {stress.name for stress, _, _ in more} <= names
    assert len({stress.name for stress, _, _ in more}) > 0.8 * len(names)
    assert not [
        draw
        for _, draw, _ in more
        if draw.inputs[0].isfinite().all() and draw.inputs[0].unique().numel() > 100 and digest(draw) in first
    ]


def test_what_a_later_round_refused_comes_first_if_the_same_candidate_comes_again(opened):
    judge = opened("x.softmax(-1)")
    count = len(tried(judge))
    _, draw, expect = next(one for one in judge.tried.rounds() if one[0].name == "rolled")
    expect()
    judge.tried.refused_on(draw)
    list(judge.tried.renewing(again=True))
    again, its = tried(judge)[0]
    assert (again.name, digest(its)) == ("rolled", digest(draw))
    # It is kept in place of another one.
    assert len(tried(judge)) == count


def test_decisive_sets_come_first(opened):
    def tells():
        judge = opened("(x * x).mean()", "1024, 2048", CheckConfig(stress_budget_s=60.0))
        # Which ones, their order decides, and which wrong answers happen to be right on what is drawn.
        decisive = judge.tried.decisive
        assert decisive <= {"many_of_all", *(stress.name for stress in SETS if stress.narrow)}
        # No drawn number is below zero.
        those = decisive | {"many_of_all", "signs"}
        assert those <= {stress.name for stress in judge.tried.in_order()[: len(those | {"one_huge"})]}
        return "one_huge" in decisive

    assert any(tells() for _ in range(5))


@pytest.mark.parametrize("expression", ["x.softmax(-1)", "torch.logsumexp(x, -1)", "torch.nn.functional.softplus(x)"])
def test_what_tells_of_no_maximum_subtracted_comes_first_and_changes_little(expression, opened):
    judge = opened(expression, "512, 64", CheckConfig(stress_budget_s=60.0))
    narrow = {stress.name for stress in SETS if stress.narrow}
    assert judge.tried.decisive & narrow
    assert judge.tried.in_order()[0].name in judge.tried.decisive | {"signs"}
    assert "unshifted" not in judge.weakness()


@pytest.mark.parametrize(
    ("name", "status", "reason"), [("gate", Status.INCORRECT, ""), ("other", Status.LOAD_ERROR, "other_names")]
)
def test_weights_that_judge_nobody_are_the_problem_of_who_needs_them(evaluate_made, name, status, reason):
    wrong = GATED.replace("Model(", "ModelNew(").replace("self.gate", f"self.{name}").partition("gated = ")[0]
    record = evaluate_made(GATED, wrong + "return x * 0\n", device="cpu", check=CheckConfig(stress=False))
    assert (record.status, record.reason) == (status, reason or record.reason)
