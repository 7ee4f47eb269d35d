"""The judge's clock on the CPU, around a made-up runner."""

import threading
from types import SimpleNamespace

import pytest
import torch

from harness.config import Limits
from harness.links.host_link import HostLink
from harness.links.link import RunnerFailed
from harness.links.start_watch import StartWatch
from harness.wire.channel import Channel, PeerGone, ProtocolError, pair
from harness.wire.layout import place
from harness.wire.messages import Armed, Burst, Enqueued, Failed, Finished, FromRunner, ToRunner
from harness.wire.nodes import NOWHERE


class Counting:
    """Stands for a freezer whose group works `early_us` after it was told of a burst, and `beside_us` between two."""

    def __init__(self, early_us, beside_us):
        self.early_us, self.beside_us = early_us, beside_us
        self.marks = 0

    def thaw(self):
        pass

    def freeze(self):
        pass

    def settle(self):
        return True

    def mark(self):
        # After it was told, at the clock's end, and when its outputs were read.
        self.marks += 1

    def worked_us(self):
        return (self.beside_us, self.early_us, 0.0)[self.marks % 3]


def answer(sock):
    channel, number = Channel(sock, ToRunner), 0
    try:
        while True:
            message, _ = channel.receive(None)
            if isinstance(message, Burst):
                number = message.number
                channel.send(Armed(number=number))
                continue
            finished = Finished(number=number, claimed_us=0.0)
            channel.send(Enqueued(number=number, nonce=message.nonce, outputs=[], finished=finished))
    except PeerGone:
        channel.close()


@pytest.mark.parametrize(("early_us", "beside_us"), [(0.0, 0.0), (5e6, 0.0), (0.0, 7e6)])
def test_what_is_done_while_a_runner_should_stand_still_is_on_its_clock(early_us, beside_us):
    ours, its = pair()
    thread = threading.Thread(target=answer, args=(its,))
    thread.start()
    freezer = Counting(early_us, beside_us)
    link = HostLink(Channel(ours, FromRunner), freezer, torch.device("cpu"), Limits(), False, StartWatch())
    link._memory = SimpleNamespace(stopped=lambda: None, close=lambda: None)
    refs, _ = place([torch.zeros(4)], NOWHERE)
    link.reserve(1, refs, {"output": refs[0]})
    with link.learning():
        readings = [link.burst([]).judge_us for _ in range(3)]
    link.channel.close()
    thread.join(5)
    assert readings[0] == pytest.approx(early_us, abs=1e6), "nothing is known of the time before its first burst"
    assert readings[1:] == pytest.approx([early_us + beside_us] * 2, abs=1e6)


@pytest.mark.parametrize("early", [Armed(number=2), Failed(phase="call", exception="ValueError", text="early", line=0)])
def test_who_says_something_before_it_is_asked_is_not_asked_any_more(early):
    ours, its = pair()

    def answers():
        channel = Channel(its, ToRunner)
        channel.receive(None)
        channel.send(Armed(number=1))
        go, _ = channel.receive(None)
        finished = Finished(number=1, claimed_us=0.0)
        channel.send(Enqueued(number=1, nonce=go.nonce, outputs=[], finished=finished))
        channel.send(early)

    thread = threading.Thread(target=answers)
    thread.start()
    link = HostLink(Channel(ours, FromRunner), Counting(0.0, 0.0), torch.device("cpu"), Limits(), False, StartWatch())
    link._memory = SimpleNamespace(stopped=lambda: None, close=lambda: None)
    refs, _ = place([torch.zeros(4)], NOWHERE)
    link.reserve(1, refs, {"output": refs[0]})
    link.burst([])
    thread.join(5)
    expected = RunnerFailed if isinstance(early, Failed) else ProtocolError
    with pytest.raises(expected, match=r"early|expected Nothing, got Armed"):
        link.burst([])
    its.close()
    link.channel.close()
