"""Parameters with two names, and init arguments that a constructor makes parameters of, or changes."""

import pytest

from harness.records import Status
from tests.judge.test_checking import QUICK

PROBLEM = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, {arguments}):
        super().__init__()
        {made}

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 24)]

def get_init_inputs():
    return [{given}]
"""
TIED = "self.embedding = nn.Linear(24, 24, bias=False); self.head = nn.Linear(24, 24, bias=False); "
TWICE = "self.head(torch.relu(self.embedding(x)))"


def judged(evaluate_made, reference, candidate, arguments="", given=""):
    first, second = (
        PROBLEM.format(name=name, arguments=arguments, given=given, made=made, forward=forward)
        for name, (made, forward) in (("Model", reference), ("ModelNew", candidate))
    )
    return evaluate_made(first, second, device="cpu", timing=QUICK)


@pytest.mark.parametrize(
    ("made", "forward"),
    [
        # Not shared, and so under both names.
        (TIED, TWICE),
        # Under either name.
        (
            "self.embedding = nn.Linear(24, 24, bias=False)",
            "self.embedding(torch.relu(self.embedding(x)))",
        ),
        ("self.head = nn.Linear(24, 24, bias=False)", "self.head(torch.relu(self.head(x)))"),
        # The first name is one that the reference has not.
        (
            "self.by_name = nn.ModuleDict({'one': nn.Linear(24, 24, bias=False)}); self.head = self.by_name['one']",
            "self.head(torch.relu(self.head(x)))",
        ),
    ],
)
def test_what_the_reference_shares_is_given_by_any_of_its_names(evaluate_made, made, forward):
    reference = TIED + "self.head.weight = self.embedding.weight", TWICE
    record = judged(evaluate_made, reference, (made, forward))
    assert record.status is Status.PASSED, record.message
    assert not any(text.startswith("plain_weights: ") for text in record.warnings)


def test_what_the_reference_has_twice_is_not_one(evaluate_made):
    shared = TIED + "self.head.weight = self.embedding.weight"
    assert judged(evaluate_made, (TIED, TWICE), (shared, TWICE)).status is Status.INCORRECT


@pytest.mark.parametrize("made", ["self.weight = w", "self.renamed = nn.Parameter(w)", "self.w = nn.Parameter(w)"])
def test_a_tensor_that_is_handed_over_stays_as_it_is(evaluate_made, made):
    attribute = made.partition(" ")[0]
    reference = "self.w = nn.Parameter(w)", "x @ self.w"
    record = judged(evaluate_made, reference, (made, f"x @ {attribute}"), "w", "torch.ones(24, 24).tril()")
    assert record.status is Status.PASSED, record.message


def test_a_constructor_may_change_what_it_is_given(evaluate_made):
    made = "self.layer = nn.Linear(sizes.pop(), how.pop('out')); sizes += [3]"
    how = made, "self.layer(x)"
    record = judged(evaluate_made, how, how, "sizes, how", "[24], dict(out=24)")
    assert record.status is Status.PASSED, record.message


@pytest.mark.parametrize(
    ("made", "forward", "status"),
    [
        ("self.table = {own}", "x * self.table", Status.INCORRECT),
        ("self.register_buffer('cos', {own})", "x * self.cos", Status.PASSED),
    ],
)
def test_tables_that_a_candidate_computes_by_itself_are_told(evaluate_made, made, forward, status):
    """Angles of a thousand radians: the reference's table is off by their rounding to float32."""
    angles = "torch.outer(torch.arange(64.0{kind}) * 16, 10000.0 ** (-torch.arange(24.0{kind}) / 24)).cos().float()"
    reference = f"self.register_buffer('cos', {angles.format(kind='')})", "x * self.cos"
    own = angles.format(kind=", dtype=torch.float64")
    record = judged(evaluate_made, reference, (made.format(own=own), forward))
    assert record.status is status
    assert ("the reference's buffers cos have no counterpart" in record.message) is (status is Status.INCORRECT)


def test_a_forward_that_changes_what_it_is_given_is_told(evaluate_made):
    reference = PROBLEM.format(name="Model", arguments="", given="", made="pass", forward="x.pop('x')")
    reference = reference.replace("[torch.randn(64, 24)]", "[dict(x=torch.randn(64, 24))]")
    record = evaluate_made(reference, reference.replace("Model", "ModelNew"), device="cpu", timing=QUICK)
    assert record.status is Status.INVALID_REFERENCE
    assert "forward changes a list or dict that it is given" in record.message
