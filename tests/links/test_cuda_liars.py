"""Runners on a made-up card whose messages are changed on the way, at random."""

import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("cuda.bindings.driver")

from cuda.bindings import driver

from harness.links.link import LateOutput, RepeatAsked, RunnerFailed
from harness.wire.channel import DeadlineExceeded, PeerGone, ProtocolError
from tests.links import lies
from tests.links.test_cuda_link import Runner, connected, draws  # noqa: F401

# What costs a runner its result, and nobody else anything.
ENDS = (DeadlineExceeded, PeerGone, ProtocolError, RunnerFailed, LateOutput)


class Liar(Runner):
    """Leaves zeros, and lies about it now and then."""

    rng = random.Random()

    def __init__(self, card, sock):
        super().__init__(card, sock)
        self.channel.send = self.say
        # Memory that another process has opened outlives its owner's freeing it, on a card.
        self.all = []

    def room(self):
        self.all.append(super().room())
        return self.all[-1]

    def work(self, given, out):
        pass

    def say(self, message):
        frames = lies.altered(self.rng, message) if self.rng.random() < 0.5 else [lies.frame(lies.plain(message))]
        try:
            for frame in frames:
                self.wire.sendall(frame)
        except OSError as error:
            raise PeerGone(str(error)) from error

    @property
    def wire(self):
        return self.channel._socket


@pytest.fixture
def refusing(connected, monkeypatch):  # noqa: F811
    """The made-up card, whose driver refuses handles of memory that nobody exported."""
    known = driver.cuIpcOpenMemHandle

    def opened(handle, flags):
        try:
            return known(handle, flags)
        except KeyError:
            return (driver.CUresult.CUDA_ERROR_INVALID_VALUE, None)

    monkeypatch.setattr(driver, "cuIpcOpenMemHandle", opened)
    return connected


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_no_conversation_ends_with_an_answer_that_was_not_computed(refusing, seed):
    link, runner = refusing.connect(Liar)
    runner.rng = random.Random(seed)
    for _ in range(4):
        given = draws(2)
        try:
            link.burst(given, gated=runner.rng.random() < 0.5, deadline_s=0.6)
            outputs = [link.output(call) for call in range(2)]
        except RepeatAsked:
            continue
        except ENDS:
            return
        for output, draw in zip(outputs, given, strict=True):
            assert not (isinstance(output, torch.Tensor) and torch.equal(output, draw.inputs[0] * 2))
