"""A baseline that becomes slower by itself is no candidate's doing."""

from rich.console import Console

from harness import session
from harness.config import Config, Limits, TimingConfig
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


def test_a_baseline_that_stays_slow_is_timed_anew_and_the_candidate_with_it(tmp_path):
    for place, text in (("problems/made/twice.py", PROBLEM), ("solutions/made/twice/sum.py", CANDIDATE)):
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.write_text(text)
    config = Config(
        problems=[str(tmp_path / "problems")],
        solutions=[str(tmp_path / "solutions")],
        device="cpu",
        timing=TimingConfig(budget_s=2.0, min_pairs=6, max_pairs=6, burst_ms=0.01, max_calls_per_burst=1),
        limits=Limits(call_s=5.0, first_call_s=10.0, load_s=60.0),
    )
    with open(tmp_path / "console", "w") as file:
        (record,) = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
    assert record.status is Status.PASSED
    assert record.warnings[0] == "evaluated_again: the baseline had become slower, not by this candidate"
    assert not any(warning.startswith("slow_baseline") for warning in record.warnings)
    assert record.baseline_ms > 29
