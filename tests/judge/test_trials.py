"""What KernelBench's rule says is recorded beside the verdict, and changes none."""

import time
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from harness import session
from harness.config import CheckConfig, Config, Limits
from harness.judge import trials
from harness.judge.endings import Refused
from harness.judge.judge import Judge
from harness.machine.card_turns import CardTurns
from harness.oracle import kernelbench
from harness.records import Outcome, Status
from tests.conftest import QUICK

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.softmax(-1)

def get_inputs():
    return [torch.randn(32, 128)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import os
import torch

class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return {expression}
"""
CANDIDATES = {
    "honest": "torch.softmax(x, 1)",
    # Wrong by far more than rounding, and far less than the tolerance.
    "close": "x.softmax(-1) + 5e-5",
    "wrong": "x.softmax(-1) * 2",
    # The first call is wrong, and on the CPU is asked for once more.
    "ends": "x.softmax(-1) + 5e-5 if self.calls < 4 else os._exit(3)",
    "raises": "x.softmax(-1) + 5e-5 if self.calls < 4 else 1 / 0",
    "raises_at_once": "1 / 0",
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    place = tmp_path_factory.mktemp("trials")
    files = {"problems/toy/one.py": PROBLEM}
    files |= {f"solutions/toy/one/{name}.py": CANDIDATE.format(expression=of) for name, of in CANDIDATES.items()}
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    config = Config(
        problems=[str(place / "problems")],
        solutions=[str(place / "solutions")],
        device="cpu",
        timing=QUICK,
        check=CheckConfig(kernelbench=True, stress=False),
    )
    with open(place / "console", "w") as file:
        return {one.candidate: one for one in session.run(config, place / "run", Console(file=file), command=["test"])}


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("honest", Status.PASSED, True),
        ("close", Status.INCORRECT, True),
        ("wrong", Status.INCORRECT, False),
        ("ends", Status.INCORRECT, None),
        ("raises", Status.INCORRECT, None),
        ("raises_at_once", Status.RUNTIME_ERROR, None),
    ],
)
def test_the_rule_stands_beside_the_verdict(records, name, status, said):
    assert (records[name].status, records[name].kernelbench_correct) == (status, said)


@pytest.mark.parametrize("asked", [True, False])
def test_it_is_asked_after_the_verdict_and_only_if_wanted(monkeypatch, asked):
    calls = []
    monkeypatch.setattr(trials, "kernelbench_correct", lambda *_: calls.append("rule") or True)
    judge = object.__new__(Judge)
    judge._turns = CardTurns()
    judge._limits, judge._reference = Limits(), None
    judge._request = SimpleNamespace(check=CheckConfig(kernelbench=asked), why_no_cuda="")
    monkeypatch.setattr(judge, "_phase", calls.append)
    monkeypatch.setattr(judge, "_load", lambda *_, **__: (SimpleNamespace(), []))

    def refused(*_):
        raise Refused(Outcome(status=Status.INCORRECT, reason="mismatch"))

    monkeypatch.setattr(judge, "_first_call", refused)
    ending, checks = judge._concluded(
        SimpleNamespace(candidate=None, alone=False, own_weights=False, explained=True), None, {}
    )
    assert ending.outcome.reason == "mismatch"
    assert calls == (["KernelBench's rule", "rule"] if asked else [])
    assert checks.kernelbench_correct is (True if asked else None)


def test_the_time_is_not_overrun():
    class Slow:
        dtype = torch.float32
        limits = Limits()

        def draw(self):
            time.sleep(0.05)

        native = burst = output = lambda *_, **__: torch.ones(2)

    slow = Slow()
    assert trials.kernelbench_correct(slow, slow, slow, time.monotonic() + 0.12, time.monotonic) is None
    assert trials.kernelbench_correct(slow, slow, slow, time.monotonic() + 5, time.monotonic) is True


@pytest.mark.parametrize(
    ("native", "precision", "known"),
    [
        (torch.ones(1), torch.float32, True),
        (torch.ones(1), torch.float64, False),
        ((torch.ones(1),), torch.float32, False),
        (1.0, torch.float32, False),
    ],
)
def test_it_knows_one_tensor_at_three_precisions(native, precision, known):
    assert kernelbench.applies(native, precision) is known


@pytest.mark.parametrize(("precision", "most"), [(torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2)])
def test_tolerances_are_by_precision(precision, most):
    zeros = torch.zeros(5, 3)
    assert kernelbench.close(zeros, zeros + 0.99 * most, precision)
    assert not kernelbench.close(zeros, zeros + 1.05 * most, precision)


def test_what_it_cannot_compare_is_wrong():
    ones = torch.ones(4)
    for output in (torch.ones(5), torch.ones(4, dtype=torch.float64), 1.0, [ones], torch.full((4,), torch.nan)):
        assert not kernelbench.close(ones, output, torch.float32)


def test_all_of_a_large_output_is_compared(monkeypatch):
    monkeypatch.setattr(kernelbench, "AT_ONCE", 7)
    expected = torch.randn(5, 10).t()
    output = expected.clone()
    assert kernelbench.close(expected, output, torch.float32)
    output[-1, -1] += 1
    assert not kernelbench.close(expected, output, torch.float32)
