"""What the judge says beyond right and wrong: problems that cannot tell, and outputs that are an input."""

import random
import re

import pytest
import torch
from rich.console import Console

from harness import session
from harness.config import CheckConfig, Config, Limits
from harness.judge.hard_turns import FEWEST, PATIENCE, HardInputs, HardTurns
from harness.links.link import Draw
from harness.oracle.stress import SETS
from harness.records import Status
from harness.runner.runner import shared_inputs
from tests.conftest import QUICK

PROBLEM = """
import torch
PRECISION = "{precision}"

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.randn(32, 128)]

def get_init_inputs():
    return []
"""
LINEAR = """
import torch

class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.rand({drawn})
        self.{layer} = torch.nn.Linear(128, 16)

    def forward(self, x):
        return self.{layer}(x)
"""
CANDIDATE = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {expression}
"""


@pytest.fixture
def judged(tmp_path):
    """The record of one candidate of a problem of one expression each."""

    def run(reference: str, candidate: str, precision: str = "float32"):
        """Both are expressions of `x`, or whole modules."""
        problem, solution = tmp_path / "problems/toy/one.py", tmp_path / "solutions/toy/one/candidate.py"
        problem.parent.mkdir(parents=True)
        solution.parent.mkdir(parents=True)
        whole = PROBLEM.format(expression="x" if "class" in reference else reference, precision=precision)
        problem.write_text(whole + (reference if "class" in reference else ""))
        solution.write_text(candidate if "class" in candidate else CANDIDATE.format(expression=candidate))
        config = Config(
            problems=[str(tmp_path / "problems")],
            solutions=[str(tmp_path / "solutions")],
            device="cpu",
            timing=QUICK,
            limits=Limits(call_s=10.0, first_call_s=20.0, load_s=60.0),
        )
        with open(tmp_path / "console", "w") as file:
            [record] = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        return record

    return run


def warning(record, word):
    return next((text for text in record.warnings if text.startswith(f"{word}: ")), "")


def test_candidates_of_a_problem_that_cannot_tell_carry_a_warning(judged):
    record = judged("x.abs().mean()", "x.abs().mean()", precision="bfloat16")
    assert record.status is Status.PASSED
    assert "known wrong answers pass on this problem: noise" in warning(record, "weak_problem")


def test_candidates_of_a_sound_problem_do_not(judged):
    record = judged("x.softmax(-1)", "torch.softmax(x, 1)")
    assert record.status is Status.PASSED
    assert warning(record, "weak_problem") == ""


@pytest.mark.parametrize("expression", ["x[x.abs() < 100]", "x[x.abs() > 100]"])
def test_hard_inputs_that_change_the_shape_of_the_output_are_left_out(judged, expression):
    record = judged(expression, expression)
    assert record.status is Status.PASSED
    assert any("the output's shape depends on the inputs' values" in note for note in record.notes)


def test_an_output_that_is_the_input_is_refused_where_the_reference_makes_a_new_one(judged):
    record = judged("x.clone()", "x")
    assert (record.status, record.reason) == (Status.INCORRECT, "aliases_input")
    assert "shares memory with input 0" in record.message


def test_so_it_is_where_the_reference_writes_to_its_input(judged):
    record = judged("x.add_(1).clone()", "x.add_(1)")
    assert (record.status, record.reason) == (Status.INCORRECT, "aliases_input")


def test_but_not_where_what_it_returns_is_that_input(judged):
    assert judged("x.add_(1)", "x.copy_(x + 1)").status is Status.PASSED


def test_and_passes_where_the_reference_returns_it_too(judged):
    assert judged("x.t()", "x.permute(1, 0)").status is Status.PASSED


def test_what_a_candidate_cannot_hand_over_is_told_with_what_it_may(judged):
    record = judged("(x, 1)", "(x, 2**70)")
    assert (record.status, record.reason) == (Status.INCORRECT, "wrong_type")
    assert record.message.startswith("output[1] is an int of more than 64 bits; an output may have tensors, numbers")


def test_an_endless_output_has_the_wrong_shape(judged):
    record = judged("x * 2", "x.mean().expand(1 << 40)")
    assert (record.status, record.reason) == (Status.INCORRECT, "wrong_shape")


def test_a_copy_is_asked_for_beside_an_output_that_may_be_the_input(judged):
    record = judged("(x[:16], x[16:].clone())", "(x[:16], x[16:])")
    assert (record.status, record.reason) == (Status.INCORRECT, "aliases_input")


def test_outputs_that_may_be_inputs_pass_beside_copies(judged):
    assert judged("(x[:16], x[16:].clone())", "(x.view(32, 128)[:16], x[16:] + 0)").status is Status.PASSED


def test_no_order_of_keys_makes_another_output_the_one_that_may_be_the_input(judged):
    record = judged("{'a': x, 'b': x.clone()}", "{'b': x.view(32, 128), 'a': x}")
    assert (record.status, record.reason) == (Status.INCORRECT, "aliases_input")


@pytest.mark.parametrize("b", ["x.clone()", "x[:16].clone()"])
def test_each_order_of_keys_is_as_good(b, judged):
    record = judged(f"{{'a': x, 'b': {b}}}", f"{{'b': {b}, 'a': x.view(32, 128)}}")
    assert record.status is Status.PASSED, record.message


def test_parameters_of_another_name_are_told_where_the_answer_is_wrong(judged):
    reference = LINEAR.format(name="Model", layer="proj", drawn=0)
    record = judged(reference, LINEAR.format(name="ModelNew", layer="dense", drawn=1))
    assert record.status is Status.INCORRECT
    assert "2 of its parameters and buffers have no counterpart" in record.message
    assert record.message.endswith("dense.weight, dense.bias")


def test_it_is_said_too_where_a_later_answer_is_wrong(judged):
    """As of weights that are folded: the first answer may be near enough."""
    reference = LINEAR.format(name="Model", layer="proj", drawn=0)
    later = "self.calls = getattr(self, 'calls', 0) + 1; return self.proj(x) * (1 if self.calls == 1 else 1.001)"
    candidate = LINEAR.format(name="ModelNew", layer="proj", drawn=0).replace("return self.proj(x)", later)
    record = judged(reference, candidate.replace("torch.rand(0)", "self.own = torch.nn.Parameter(torch.ones(3))"))
    assert record.status is Status.INCORRECT
    assert "1 of its parameters and buffers have no counterpart" in record.message


def test_only_memory_in_common_counts():
    block = torch.arange(100.0)
    inputs = [block[:40], block[40:80]]
    assert shared_inputs([block[80:]], inputs) == []
    assert shared_inputs([block[35:45]], inputs) == [0, 1]
    assert shared_inputs([inputs[1].view(5, 8).t()], inputs) == [1]
    assert shared_inputs([torch.empty(0), block[:4].to_sparse(), block.to("meta")], inputs) == []


COUNTS = """
import torch

class ModelNew(torch.nn.Module):
    calls = {before}

    def forward(self, x):
        self.calls += 1
        return x + self.calls
"""


@pytest.mark.parametrize(
    ("before", "words"), [(0, "on other draws it was right, and called again on the same inputs"), (5, "two answers")]
)
def test_an_answer_that_depends_on_earlier_calls_is_called_so(before, words, judged):
    record = judged("x + 1", COUNTS.format(before=before))
    assert (record.status, record.reason) == (Status.INCORRECT, "mismatch:offset")
    assert words in record.message
    assert "does it depend on earlier calls?" in record.message


def test_an_answer_that_is_wrong_in_one_way_is_not(judged):
    assert "earlier calls" not in judged("x + 1", "x + 2").message


def test_an_element_that_is_wrong_on_some_draws_is_told_with_its_values(evaluate_made):
    # One draw in two, and not the first.
    is_other = "(self.__dict__.setdefault('first', bool(x[0, 0] > 0)) != bool(x[0, 0] > 0))"
    wrong = f"x + 1 + torch.nn.functional.one_hot(torch.tensor(130), 4096).view(32, 128) * {is_other} * 5"
    record = evaluate_made(
        PROBLEM.format(expression="x + 1", precision="float32"),
        CANDIDATE.format(expression=wrong),
        device="cpu",
        check=CheckConfig(stress=False),
        timing=QUICK,
    )
    assert (record.status, record.reason.partition(":")[0]) == (Status.INCORRECT, "mismatch")
    assert re.search(r": one element, at \[1, 2\]; \S+ in place of \S+; error ", record.message)
    assert record.message.endswith("; on other draws it was right")


@pytest.mark.parametrize(
    ("candidate", "reason", "message"),
    [
        ("torch.relu(x)", "input_unchanged", "input 0, which the reference changes, was left as it was"),
        ("x.relu_() + 1", "mismatch:offset", "output: off by the constant"),
        ("torch.relu(x) + 0 * x.abs_()", "mismatch", "input 0, as the call left it: "),
    ],
)
def test_what_a_reference_works_in_place_on_has_its_own_name(candidate, reason, message, judged):
    record = judged("x.relu_()", candidate)
    assert (record.status, record.reason.partition(":")[0]) == (Status.INCORRECT, reason.partition(":")[0])
    assert record.message.startswith(message)


RAISES = """
class Model(torch.nn.Module):
    def forward(self, x):
        if x.abs().max() > 50:
            raise ValueError("too large\\nfor this")
        return x + 1
"""


def test_stress_sets_on_which_the_reference_raises_are_named_with_the_reason(judged):
    record = judged(RAISES, "x + 1")
    assert record.status is Status.PASSED
    (note,) = [note for note in record.notes if note.startswith("stress sets left out, because the reference raised")]
    assert "scaled_far_up (ValueError: too large)" in note
    assert record.evidence["stress_sets"]
    assert "scaled_far_up" not in record.evidence["stress_sets"]


def test_what_to_expect_on_hard_inputs_is_found_out_after_the_call():
    asked = []
    stress = next(one for one in SETS if one.binding)
    draw = Draw(inputs=(torch.zeros(2),), seed=1)
    answers = iter(["what to expect", None])
    hard = HardInputs(iter([(stress, draw, lambda: asked.append(1) or next(answers))] * 2), 3, 60.0)
    (first,), (second,) = hard.take(), hard.take()
    assert (asked, hard.done, hard.left) == ([], [], 1)
    assert (first.expected(), second.expected()) == ("what to expect", None)
    # Only what something could be expected of has been tried.
    assert hard.done == [stress.name]
    assert (hard.take(), hard.left) == ([], 0)


def test_a_refusal_on_hard_inputs_says_what_is_new_about_them_and_has_their_error(judged):
    record = judged("x.tanh()", "x.tanh() * (x.abs() < 6)")
    assert record.status is Status.INCORRECT
    assert re.search(r"^on inputs '\w+' \(with numbers as large as \S+, where drawn ones reach \S+\): ", record.message)
    # On drawn inputs it is as right as the reference.
    assert record.error_ratio > 1000


def test_a_nan_on_hard_inputs_has_no_error_rather_than_that_of_drawn_ones(judged):
    record = judged("x.tanh()", "(x.tanh() / (x.abs() < 6)).nan_to_num(nan=0, posinf=torch.nan, neginf=torch.nan)")
    assert record.reason.startswith("nan")
    assert record.error_ratio is None


def test_a_usual_mistake_is_named_in_the_record(judged):
    gelu = "torch.nn.functional.gelu(x{})"
    record = judged(gelu.format(""), gelu.format(", approximate='tanh'"))
    assert (record.status, record.reason) == (Status.INCORRECT, "mismatch:exchanged")
    assert "as PyTorch with gelu(approximate='tanh') (the reference: approximate='none')" in record.message


class Clock:
    """A clock that goes on only when it is told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def tried(budget_s, first_s, takes_s, most=1, expected="something"):
    """How many hard inputs are begun that take so many seconds each, up to `most` in a burst, and the seconds spent."""
    clock = Clock()
    stress, draw = SETS[0], Draw(inputs=(), seed=1)
    hard = HardInputs(
        iter([(stress, draw, lambda: expected)] * len(takes_s)), len(takes_s), budget_s, first_s, clock, ahead=64
    )
    turns = HardTurns(hard, 4, random.Random(1))
    begun = 0
    for calls in turns.remaining(most):
        assert len(calls) <= most
        for call in calls:
            with call.charged():
                clock.now += takes_s[begun]
                call.expected()
            begun += 1
    return begun, hard.spent_s


@pytest.mark.parametrize(
    ("budget_s", "first_s", "takes_s", "most", "begun"),
    [
        # Of equal ones as many as fit, and none for which the time does not do.
        (6.0, 1.0, [1.0] * 9, 1, 6),
        (6.0, 0.0, [1.25] * 9, 1, 4),
        # Four of them for twice the time, if need be.
        (3.0, 1.0, [1.0] * 9, 1, 4),
        (3.0, 2.0, [2.0] * 9, 1, 3),
        # One in any case, also of a problem whose first expectation took longer than there is time for.
        (3.0, 17.0, [17.0] * 9, 1, 1),
        # One that takes longer than the one before overruns by itself alone.
        (3.0, 0.1, [0.1, 7.0, 5.0], 1, 2),
        # Several in a burst, as far as all of them fit.
        (6.0, 1.0, [1.0] * 9, 2, 6),
        (9.0, 0.5, [0.5] * 9, 4, 9),
    ],
)
def test_a_hard_input_is_begun_only_if_it_fits(budget_s, first_s, takes_s, most, begun):
    count, spent_s = tried(budget_s, first_s, takes_s, most)
    assert count == begun
    assert spent_s == sum(takes_s[:begun])
    assert spent_s <= (1 if begun > FEWEST else PATIENCE) * budget_s + max(takes_s)


def test_while_nothing_can_be_expected_sets_are_begun_for_twice_the_time():
    assert tried(3.0, 1.0, [1.0] * 9, expected=None) == (6, 6.0)
    assert tried(3.0, 1.0, [17.0] * 9, expected=None) == (1, 17.0)


def test_a_pass_without_any_hard_input_says_so(judged):
    # float32 has none of the digits that such sines depend on.
    record = judged("(x * 1e30).sin()", "torch.sin(1e30 * x)")
    assert record.status is Status.PASSED
    [warning] = [warning for warning in record.warnings if warning.startswith("no_hard_inputs")]
    assert "hard inputs change" not in warning


def test_hard_inputs_change_no_integers_whatever_the_time(judged):
    integers = """
def get_inputs():
    return [torch.randint(100, (32, 128))]

class Model(torch.nn.Module):
    def forward(self, x):
        return x * x
"""
    record = judged(integers, "x.square()")
    assert record.status is Status.PASSED
    [warning] = [warning for warning in record.warnings if warning.startswith("no_hard_inputs")]
    assert "hard inputs change floating-point tensors only" in warning
    assert "stress_budget_s" not in warning


def test_a_judge_that_runs_out_of_memory_blames_no_candidate(evaluate_made):
    record = evaluate_made(
        PROBLEM.format(expression="x + 1", precision="float32"),
        CANDIDATE.format(expression="x + 1"),
        device="cpu",
        timing=QUICK,
        limits=Limits(call_s=10.0, first_call_s=20.0, load_s=60.0, device_memory_gb=1e-4),
    )
    assert (record.status, record.reason) == (Status.UNSUPPORTED, "needs_memory")
    assert "GB are free on the cpu: choose a smaller variant, or a device with more memory" in record.message


def test_a_small_device_that_is_large_enough_judges(evaluate_made):
    record = evaluate_made(
        PROBLEM.format(expression="x.softmax(-1)", precision="float32"),
        CANDIDATE.format(expression="torch.softmax(x, 1)"),
        device="cpu",
        timing=QUICK,
        limits=Limits(call_s=10.0, first_call_s=20.0, load_s=60.0, device_memory_gb=0.2),
    )
    assert record.status is Status.PASSED
    assert record.evidence["stress_sets"]


def test_what_is_raised_on_hard_inputs_alone_names_them(judged):
    """Nobody can repeat it from the drawn inputs, which are never as large."""
    record = judged("x * 2", "(x * 2) if float(x.abs().max()) < 50 else torch.linalg.inv(x @ x.T * 0)")
    assert (record.status, record.reason) == (Status.RUNTIME_ERROR, "exception:_LinAlgError")
    assert re.search(r"\(on inputs '\w+'.*, or a drawn one in the same burst\)", record.message)
