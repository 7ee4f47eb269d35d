"""Weights that a module begins with as ones and zeros are others for whoever has them under the reference's names."""

import pytest

from harness.records import Status
from tests.judge.test_checking import QUICK

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 32)
        self.norm = nn.BatchNorm1d(32)
        self.scale = nn.Parameter(torch.ones(32))
        self.eval()

    def forward(self, x):
        return self.norm(self.linear(x)) * self.scale

def get_inputs():
    return [torch.randn(64, 24)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 32)
        self.{norm} = nn.BatchNorm1d(32)
        self.scale = nn.Parameter(torch.ones(32))
        factor = (self.{norm}.weight / torch.sqrt(self.{norm}.running_var + 1e-5)).detach()
        self.folded = factor[:, None] * self.linear.weight.detach()
        self.offset = (factor * (self.linear.bias - self.{norm}.running_mean) + self.{norm}.bias).detach()
        self.eval()

    def forward(self, x):
        return {forward}
"""


@pytest.mark.parametrize(
    ("forward", "norm", "status", "warned"),
    [
        ("self.norm(self.linear(x)) * self.scale", "norm", Status.PASSED, False),
        # The same weights as the reference's, from the start.
        ("torch.nn.functional.linear(x, self.folded, self.offset) * self.scale", "norm", Status.PASSED, False),
        ("self.linear(x) / (1 + 1e-5) ** 0.5 * self.scale", "norm", Status.INCORRECT, False),
        ("self.norm(self.linear(x))", "norm", Status.INCORRECT, False),
        # Nobody can give it the reference's values, so they are ones and zeros.
        ("self.mine(self.linear(x)) * self.scale", "mine", Status.PASSED, True),
        ("self.linear(x) / (1 + 1e-5) ** 0.5", "mine", Status.PASSED, True),
        ("self.mine(self.linear(x)) * 1.01", "mine", Status.INCORRECT, False),
    ],
)
def test_weights_count_where_a_candidate_has_them(evaluate_made, forward, norm, status, warned):
    record = evaluate_made(PROBLEM, CANDIDATE.format(norm=norm, forward=forward), device="cpu", timing=QUICK)
    assert record.status is status, record.message
    assert any(text.startswith("plain_weights: ") for text in record.warnings) is warned
