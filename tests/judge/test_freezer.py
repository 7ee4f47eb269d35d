"""Process groups that stand still, and go on."""

import mmap
import os
import signal
import time
from pathlib import Path
from unittest import mock

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
    freezer = Freezer(child)
    freezer.mark()
    assert freezer.settle()
    assert freezer.worked_us() == 0


def test_what_is_computed_after_the_stop_is_told(counting):
    freezer, counts = counting
    freezer.freeze()
    freezer.settle()
    freezer.mark()
    assert freezer.settle()
    assert freezer.worked_us() == 0
    then = counts()
    freezer.thaw()
    while counts()[0] - then[0] < 1000:
        time.sleep(0.01)
    assert freezer.worked_us() > 0


def test_a_member_that_nobody_knew_makes_the_standstill_doubtful():
    ready, tell = os.pipe()
    leader = os.fork()
    if leader == 0:
        os.setsid()
        os.write(tell, b"1")
        signal.signal(signal.SIGUSR1, lambda *_: os.fork() and os.write(tell, b"2"))
        while True:
            signal.pause()
    os.read(ready, 1)
    freezer = Freezer(leader)

    def stopped() -> bool:
        freezer.freeze()
        freezer.mark()
        return freezer.settle()

    stopped()
    assert sum(1 for _ in freezer.members()) == 1
    os.kill(leader, signal.SIGUSR1)
    freezer.thaw()
    os.read(ready, 1)
    assert not stopped()
    assert sum(1 for _ in freezer.members()) == 2
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)


def test_orphans_are_looked_for_last():
    class Moving(Freezer):
        """Its member's child is left to its parent's parent while one looks."""

        moved = False

        def _adopted(self):
            return [77] if self.moved else []

    children = {5: [6], 6: [], 77: []}
    freezer = Moving(5)

    def look(tasks: Path) -> list[int]:
        freezer.moved = True
        return children[int(tasks.parent.name)]

    with mock.patch("harness.judge.freezer._children", look):
        assert list(freezer.members()) == [5, 6, 77]
