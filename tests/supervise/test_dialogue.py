"""What a judge tells of its phases while it is asked."""

import contextlib
import socket
from types import SimpleNamespace

from harness.supervise.dialogue import Dialogue
from harness.wire.channel import Channel
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
