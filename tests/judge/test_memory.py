"""How many bytes the judge holds at once, over those of a call's inputs and outputs."""

import pytest
import torch

from benchmarks._live_bytes import LiveBytes
from harness.config import CheckConfig, TimingConfig
from harness.judge import examiner, planning
from harness.judge.examiner import Examiner
from harness.judge.reference import Reference
from harness.machine.card_turns import CardTurns
from harness.oracle import chunks, error, exact, formats, slices
from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
from harness.wire.messages import CandidateSource

ROWS, LENGTH = 2048, 2048
PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.rand({rows}, {length})]

def get_init_inputs():
    return []
"""
# Inputs and outputs of a call.
CALL_BYTES = 2 * 4 * ROWS * LENGTH


@pytest.fixture
def reference(tmp_path, monkeypatch):
    """A made-up reference, large against all slices and samples, which a real one is large against as they are."""
    monkeypatch.setattr(exact, "AT_ONCE", {"cpu": CALL_BYTES // 8})
    monkeypatch.setattr(slices, "SLICE", {"cpu": 1 << 18})
    monkeypatch.setattr(formats, "AT_ONCE", 1 << 18)
    monkeypatch.setattr(error, "PART_ROWS", 1 << 10)
    monkeypatch.setattr(error, "PART", 1 << 18)
    monkeypatch.setattr(examiner, "KEPT_BYTES", 0)

    def made(expression):
        path = tmp_path / "problem.py"
        path.write_text(PROBLEM.format(expression=expression, rows=ROWS, length=LENGTH))
        source = CandidateSource(path=str(path), entries=("Model",))
        return Reference(source, "float32", torch.device("cpu"), seed=1)

    return made


# The last one's batch entries depend on each other, so that its float64 run is made at once.
@pytest.mark.parametrize(
    ("expression", "most"), [("torch.relu(x)", 2.5), ("x.softmax(-1)", 2.5), ("x - x.mean()", 3.5)]
)
def test_what_to_expect_takes_little_beside_the_inputs(expression, most, reference):
    model = reference(expression)
    oracle, draw = Oracle(model.model), model.draw()
    oracle.expect(list(draw.inputs), draw.seed)
    with LiveBytes() as live:
        expected = oracle.expect(list(draw.inputs), draw.seed)
    assert live.peak <= most * CALL_BYTES
    # What stays is the output, and the exact one at twice the width, beside samples.
    assert live.now <= 1.7 * CALL_BYTES
    del expected
    assert live.now < 0.1 * CALL_BYTES


def test_a_check_takes_next_to_nothing(reference):
    model = reference("torch.relu(x)")
    oracle, draw = Oracle(model.model), model.draw()
    expected = oracle.expect(list(draw.inputs), draw.seed)
    other = expected.native * (1 + 2.0**-24)
    with LiveBytes() as live:
        assert oracle.check(expected, other).passed
    assert live.peak < 0.2 * CALL_BYTES


@pytest.mark.slow
def test_a_hard_input_takes_no_more_than_a_drawn_one_and_itself(reference):
    model = reference("torch.relu(x)")
    oracle, draw = Oracle(model.model), model.draw()
    oracle.expect(list(draw.inputs), draw.seed)
    with LiveBytes() as live:
        for stress, inputs in oracle.stress_inputs(list(draw.inputs), draw.seed, SETS):
            oracle.expect_stress(stress, inputs, list(draw.inputs), draw.seed)
            del inputs
    assert live.peak <= 3.5 * CALL_BYTES


def test_a_hard_input_of_independent_entries_takes_no_float64_copy(reference, monkeypatch):
    monkeypatch.setattr(chunks, "ENOUGH", {"cpu": 1 << 17})
    model = reference("torch.sigmoid(x)")
    oracle, draw = Oracle(model.model), model.draw()
    oracle.expect(list(draw.inputs), draw.seed)
    (one,) = (one for one in SETS if one.name == "signs_up")
    ((_, inputs),) = oracle.stress_inputs(list(draw.inputs), draw.seed, [one])
    with LiveBytes() as live:
        expected = oracle.sampled_stress(one, inputs, [], draw.seed)
        assert oracle.check(expected, expected.native + 2.0**-30).passed
    # The reference's output, the candidate's, and a share of either.
    assert live.peak <= 1.3 * CALL_BYTES


@pytest.mark.parametrize(("expression", "most"), [("torch.relu(x)", 6.0), ("x / torch.norm(x)", 5.0)])
def test_a_problem_is_opened_within_a_bound_and_then_nothing_is_held(expression, most, reference):
    model = reference(expression)
    with LiveBytes() as live:
        plan = planning.workload(model, TimingConfig(), 600.0)
        assert live.now == 0
        opened = Examiner(model, (), CheckConfig(), plan, CardTurns())
    # In whatever order the stress sets come: one that asks how the output grows takes a call more, and so does a run of
    # the reference on inputs that are moved by a rounding, for an answer that is wrong in few elements.
    assert live.peak <= most * CALL_BYTES
    assert live.now < 0.1 * CALL_BYTES
    assert opened.meaningful


def test_it_is_asked_how_much_is_free_while_nothing_is_held(reference, monkeypatch):
    """A problem of 8 GB a call was refused for 17 GB that had only been needed to try it."""
    held = []
    model = reference("torch.relu(x)")
    with LiveBytes() as live:
        monkeypatch.setattr(planning, "require_room", lambda *_: held.append(live.now) or 0)
        planning.workload(model, TimingConfig(), 600.0)
    assert held == [0]
