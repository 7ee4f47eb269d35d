"""What a judge tells of its phases while it is asked."""

import contextlib
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from harness.supervise import dialogue as dialogue_module
from harness.supervise.dialogue import Dialogue
from harness.wire.channel import Channel, DeadlineExceeded
from harness.wire.messages import FromJudge, Phase, Retime, Retimed, ToJudge


def test_what_a_phase_has_reached_is_told_and_is_no_phase():
    ours, its = socket.socketpair()
    with contextlib.closing(ours), contextlib.closing(its):
        assert_told(Channel(ours, FromJudge), Channel(its, ToJudge))


def assert_told(channel, judge):
    for message in (
        Phase(name="load"),
        Phase(name="timing"),
        Phase(name="timing", reached="±3% → 0.5%"),
        Retimed(slower=False),
    ):
        judge.send(message)
    dialogue = Dialogue(SimpleNamespace(channel=channel))
    told = []
    assert dialogue.ask(Retime(), Retimed, 10.0, report_phase=told.append) == Retimed(slower=False)
    assert told == ["load", "timing", "timing ±3% → 0.5%"]
    assert list(dialogue.spent_s()) == ["load", "timing"]


@contextlib.contextmanager
def judge_that(*phases):
    """A dialogue with a judge that comes to these phases, each after so many seconds, and then answers."""
    ours, its = socket.socketpair()

    def answer(judge):
        with contextlib.suppress(OSError):
            for name, after_s in phases:
                time.sleep(after_s)
                judge.send(Phase(name=name))
            judge.send(Retimed(slower=False))

    with contextlib.closing(ours), contextlib.closing(its):
        thread = threading.Thread(target=answer, args=(Channel(its, ToJudge),))
        thread.start()
        yield Dialogue(SimpleNamespace(channel=Channel(ours, FromJudge)))
        thread.join()


def test_what_comes_before_the_problem_s_own_code_has_a_limit_of_its_own(monkeypatch):
    with judge_that(("judge", 0.0), ("ceilings", 0.3), ("reference", 0.3)) as dialogue:
        dialogue.ask(Retime(), Retimed, 0.5)
    for name in ("ceilings", "reference"):
        monkeypatch.setattr(dialogue_module, "START_S", 0.1)
        with judge_that((name, 0.0), ("expectation", 0.3)) as dialogue, pytest.raises(DeadlineExceeded):
            dialogue.ask(Retime(), Retimed, 0.2)
