"""The judge's clock on a card."""

import pytest
from rich.console import Console

from harness import session
from harness.config import Config, TimingConfig
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
def test_outputs_of_a_long_burst_are_compared_with_a_look_that_is_over(tmp_path):
    for place, text in (("problems/made/triple.py", PROBLEM), ("solutions/made/triple/copy.py", COPY)):
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.write_text(text)
    config = Config(
        problems=[str(tmp_path / "problems")],
        solutions=[str(tmp_path / "solutions")],
        device="cuda:0",
        timing=TimingConfig(budget_s=5.0, min_pairs=4, max_pairs=4, max_calls_per_burst=256),
    )
    with open(tmp_path / "console", "w") as file:
        (record,) = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
    assert record.status is Status.PASSED, record.message
    assert record.timing.calls_per_burst == 256
    assert record.speedup_lo < 1 < record.speedup_hi
