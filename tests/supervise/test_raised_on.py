"""Candidates that raise on hard inputs: refused where something was asked of them there, and only there."""

import pytest

from harness.config import CheckConfig, Limits
from harness.records import Status
from tests.conftest import QUICK

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x.abs().sum(-1)
def get_inputs(): return [torch.rand(32, 8)]
def get_init_inputs(): return []
"""
CANDIDATE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if {condition}:
            raise ValueError("what is this?")
        return x.abs().sum(-1)
"""
LIMITS = Limits(call_s=5.0, first_call_s=10.0, load_s=60.0)


@pytest.fixture
def raises_if(evaluate_made):
    def run(condition):
        return evaluate_made(
            PROBLEM,
            CANDIDATE.replace("{condition}", condition),
            device="cpu",
            timing=QUICK,
            limits=LIMITS,
            check=CheckConfig(stress_budget_s=20.0),
        )

    return run


@pytest.mark.parametrize("condition", ["x.isnan().any()", "not x.isfinite().all()"])
def test_what_only_warns_may_be_raised_on(raises_if, condition):
    record = raises_if(condition)
    assert record.status is Status.PASSED, record.message
    assert "stress: on inputs 'nan' it raised, and so was not tried on them" in record.warnings
    assert "nan" not in record.evidence["stress_sets"]
    assert "negative" in record.evidence["stress_sets"]


def test_what_binds_may_not(raises_if):
    record = raises_if("(x < 0).any()")
    assert (record.status, record.reason) == (Status.RUNTIME_ERROR, "exception:ValueError")
    assert "on inputs '" in record.message
