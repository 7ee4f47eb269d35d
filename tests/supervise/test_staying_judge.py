"""One judge opens problem after problem, but for what a problem's code leaves behind in it."""

import re

import pytest
from rich.console import Console

from harness import session
from harness.config import Config
from harness.records import Status
from tests.conftest import QUICK

PROBLEM = """
import torch
from torch import nn
{leaves}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return x @ self.layer.weight.T + self.layer.bias
"""


@pytest.fixture
def opened(tmp_path):
    """The judges' logs of a run over three problems, the first of which leaves something behind; all pass."""

    def run(leaves):
        for name, text in (("a", leaves), ("b", ""), ("c", "")):
            for place, content in (
                (f"problems/made/{name}.py", PROBLEM.format(leaves=text)),
                (f"solutions/made/{name}/candidate.py", CANDIDATE),
            ):
                path = tmp_path / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        config = Config(
            problems=[str(tmp_path / "problems")], solutions=[str(tmp_path / "solutions")], device="cpu", timing=QUICK
        )
        with open(tmp_path / "console", "w") as file:
            records = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        assert [record.status for record in records] == [Status.PASSED] * 3, [record.message for record in records]
        logs = sorted((tmp_path / "run/logs").glob("*.judge.txt"))
        return [re.findall(r"/([abc])\.py", log.read_text()) for log in logs]

    return run


def test_a_judge_stays(opened):
    assert opened("") == [["a", "b", "c"]]


@pytest.mark.parametrize(
    "leaves",
    [
        "torch.set_default_dtype(torch.float64)",
        "nn.Linear.forward = lambda self, x, old=nn.Linear.forward: old(self, x)",
        "torch.kept = torch.ones(5 << 26)",
    ],
)
def test_it_is_replaced_where_a_problem_leaves_something_behind(opened, leaves):
    assert opened(leaves) == [["a"], ["b", "c"]]
