"""A baseline that becomes slower by itself is no candidate's doing."""

from harness.config import Limits, TimingConfig
from harness.records import Status

# As if the machine became slower for the baseline, for good, after it was timed alone.
PROBLEM = """
import time
import torch
from torch import nn

SEEN = []

class Model(nn.Module):
    def forward(self, x):
        SEEN.append(1)
        if len(SEEN) > 18:
            time.sleep(0.03)
        return x * 2.0

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x + x
"""


def test_a_baseline_that_stays_slow_is_timed_anew_and_the_candidate_with_it(evaluate_made):
    record = evaluate_made(
        PROBLEM,
        CANDIDATE,
        device="cpu",
        timing=TimingConfig(budget_s=2.0, min_pairs=6, max_pairs=6, burst_ms=0.01, max_calls_per_burst=1),
        limits=Limits(call_s=5.0, first_call_s=10.0, load_s=60.0),
    )
    assert record.status is Status.PASSED
    assert record.warnings[0] == "evaluated_again: the baseline had become slower, not by this candidate"
    assert not any(warning.startswith("slow_baseline") for warning in record.warnings)
    assert record.baseline_ms > 29
