"""A baseline that goes wrong beside a candidate: whose fault that is, a fresh one tells when the candidate is gone."""

import pytest

from harness import environment, session
from harness.config import Config, Limits
from harness.processes.nursery import Nursery
from harness.records import Status
from harness.supervise.builds import BuildResult
from harness.supervise.second_chance import SecondChance
from harness.supervise.supervisor import Supervisor
from tests.conftest import QUICK

PROBLEM = """
import os
from pathlib import Path

import torch
from torch import nn

WRONG = Path({wrong!r})

class Model(nn.Module):
    def forward(self, x):
        wrong = WRONG.read_text() if WRONG.exists() else ""
        return x * 3.0 + (os.getpid() if wrong in (str(os.getpid()), "all") else 0)

def get_inputs():
    return [torch.randn(1 << 10)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x * 3.0
"""


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """The records of two honest candidates; the baseline goes wrong while the first is timed, and `later` is
    what is wrong when it is gone: nothing, or all processes."""

    # As on a card.
    monkeypatch.setattr(SecondChance, "_outputs_are_open", lambda self: True)

    def run(later):
        wrong = tmp_path / "wrong"
        for place, text in {
            "problems/made/problem.py": PROBLEM.format(wrong=str(wrong)),
            "solutions/made/problem/first.py": CANDIDATE,
            "solutions/made/problem/second.py": CANDIDATE,
        }.items():
            path = tmp_path / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        config = Config(
            problems=[str(tmp_path / "problems")],
            solutions=[str(tmp_path / "solutions")],
            device="cpu",
            timing=QUICK,
            limits=Limits(call_s=5.0, first_call_s=10.0, load_s=60.0),
        )

        def strike(job, now):
            if job.candidate.name == "first" and now == "timing":
                wrong.write_text(str(supervisor.groups.current.baseline.pid))
            elif now == "starting judge":
                wrong.write_text(later)

        nursery = Nursery()
        supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, strike)
        try:
            return [supervisor.evaluate(job, BuildResult()) for job in session.plan(config).jobs]
        finally:
            supervisor.close()
            nursery.close()

    return run


def test_a_candidate_beside_which_alone_the_baseline_is_wrong_is_rejected(evaluate):
    first, second = evaluate(later="")
    assert (first.status, first.reason) == (Status.REJECTED, "spoils_baseline")
    assert second.status is Status.PASSED


def test_a_baseline_that_is_wrong_by_itself_is_nobodys_doing(evaluate):
    for record in evaluate(later="all"):
        assert record.status is Status.INVALID_REFERENCE
