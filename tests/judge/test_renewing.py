"""Inputs that a candidate has met are made anew for the next one."""

import pytest
import torch

from harness.config import CheckConfig, TimingConfig
from harness.judge import planning, tried_inputs
from harness.judge.examiner import Examiner
from harness.judge.reference import Reference
from harness.machine.card_turns import CardTurns
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


def met(judge):
    """What one candidate meets of hard inputs, by set."""
    return {stress.name: digest(draw) for stress, draw, _ in judge.tried.stress_sets()}


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
    first = list(judge.tried.stress_sets())
    stress, draw, _ = next(one for one in first[::-1] if one[0].name == "rolled")
    judge.tried.refused_on(draw)
    list(judge.tried.renewing(again=True))
    again = list(judge.tried.stress_sets())
    assert again[0][0] is stress
    assert digest(again[0][1]) == digest(draw)
    assert sum(digest(one) != digest(other) for (_, one, _), (_, other, _) in zip(first, again, strict=True)) > 6
    list(judge.tried.renewing())
    assert digest(draw) not in met(judge).values()


def test_decisive_sets_come_first(opened):
    judge = opened("(x * x).mean()", "1024, 2048", CheckConfig(stress_budget_s=60.0))
    # Which one, their order decides, if each tells of what the other tells of.
    assert "one_huge" in judge.tried.decisive
    assert judge.tried.decisive <= {"one_huge", "many_of_all"}
    assert {stress.name for stress in judge.tried.in_order()[:2]} == {"one_huge", "many_of_all"}


@pytest.mark.parametrize("expression", ["x.softmax(-1)", "torch.logsumexp(x, -1)", "torch.nn.functional.softplus(x)"])
def test_what_tells_of_no_maximum_subtracted_comes_first_and_changes_little(expression, opened):
    judge = opened(expression, "512, 64", CheckConfig(stress_budget_s=60.0))
    narrow = {stress.name for stress in SETS if stress.narrow}
    assert judge.tried.decisive & narrow
    assert judge.tried.in_order()[0].name in judge.tried.decisive
    assert "unshifted" not in judge.weakness()


@pytest.mark.parametrize(
    ("name", "status", "reason"), [("gate", Status.INCORRECT, ""), ("other", Status.LOAD_ERROR, "other_names")]
)
def test_weights_that_judge_nobody_are_the_problem_of_who_needs_them(evaluate_made, name, status, reason):
    wrong = GATED.replace("Model(", "ModelNew(").replace("self.gate", f"self.{name}").partition("gated = ")[0]
    record = evaluate_made(GATED, wrong + "return x * 0\n", device="cpu", check=CheckConfig(stress=False))
    assert (record.status, record.reason) == (status, reason or record.reason)
