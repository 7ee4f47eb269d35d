"""Process groups that stand still, and go on."""

import mmap
import os
import signal
import time
from pathlib import Path

import pytest

from harness.judge.freezer import Freezer
from harness.wire.channel import PeerGone


@pytest.fixture
def counting():
    """A family of three, each of which counts as fast as it can: its freezer, and a look at the counts."""
    shared = memoryview(mmap.mmap(-1, 24)).cast("Q")
    leader = os.fork()
    if leader == 0:
        os.setsid()
        # A child, and an orphan.
        number = 0
        if os.fork() == 0:
            number = 1
        elif os.fork() == 0:
            if os.fork():
                os._exit(0)
            number = 2
        while True:
            shared[number] += 1
    while not all(shared):
        time.sleep(0.01)
    yield Freezer(leader), shared.tolist
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)


def test_who_stands_still_does_nothing_until_let_go(counting):
    freezer, counts = counting
    freezer.freeze()
    freezer.settle()
    then = counts()
    time.sleep(0.1)
    assert counts() == then
    freezer.thaw()
    deadline = time.monotonic() + 10
    while any(now == before for now, before in zip(counts(), then, strict=True)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(now != before for now, before in zip(counts(), then, strict=True))


def test_members_are_found(counting):
    freezer, _ = counting
    # The orphan was adopted by another process than the leader's parent here, which is no forking parent.
    members = list(freezer.members())
    assert members[0] == freezer.leader
    assert len(members) >= 2
    assert all(Path(f"/proc/{pid}/stat").exists() for pid in members)


def test_a_group_that_is_gone_is_a_peer_gone():
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(PeerGone):
        Freezer(child).freeze()
    assert Freezer(child).settle()
