"""The judge's clock on a card."""

import pytest

from harness.config import TimingConfig
from harness.records import Status

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x * 3.0

def get_inputs():
    return [torch.randn(1 << 16)]

def get_init_inputs():
    return []
"""
COPY = """
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x * 3.0
"""


@pytest.mark.gpu
def test_outputs_of_a_long_burst_are_compared_with_a_look_that_is_over(evaluate_made):
    timing = TimingConfig(budget_s=5.0, min_pairs=4, max_pairs=4, max_calls_per_burst=256)
    record = evaluate_made(PROBLEM, COPY, device="cuda:0", timing=timing)
    assert record.status is Status.PASSED, record.message
    assert record.timing.calls_per_burst == 256
    assert record.speedup_lo < 1 < record.speedup_hi
