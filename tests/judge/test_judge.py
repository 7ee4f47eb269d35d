"""What becomes of an evaluation in which memory runs out in the judge itself."""

from types import SimpleNamespace

import pytest
import torch

from harness.config import Limits
from harness.judge.judge import Judge
from harness.machine.card_turns import CardTurns
from harness.records import Status


@pytest.fixture
def judge(monkeypatch):
    """A judge whose evaluations end with an exception of its own."""

    def made(error):
        def fails(*_, **__):
            raise error

        closed = []
        one = object.__new__(Judge)
        one._turns, one._device, one._others_bytes = CardTurns(), torch.device("cpu"), 0
        monkeypatch.setattr(one, "_connect", lambda *_: SimpleNamespace(close=lambda: closed.append(True)))
        monkeypatch.setattr(one, "_load", fails)
        monkeypatch.setattr(one, "_limits", Limits(), raising=False)
        return one, closed

    return made


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_it_is_the_harness_s_own_and_the_runner_is_let_go(judge, error):
    one, closed = judge(error)
    verdict = one.evaluate(SimpleNamespace(runner_pid=1, candidate=None, alone=False, own_weights=False), 0)
    assert (verdict.outcome.status, verdict.outcome.reason) == (Status.UNSUPPORTED, "needs_memory")
    assert "and not in the candidate's process" in verdict.outcome.message
    assert closed == [True]


def test_another_mistake_of_the_judge_s_is_no_lack_of_memory(judge):
    one, _ = judge(RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        one.evaluate(SimpleNamespace(runner_pid=1, candidate=None, alone=False, own_weights=False), 0)
