"""Process groups that stand still, and go on."""

import ctypes
import mmap
import os
import platform
import signal
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

from harness.links.freezer import Freezer, _waits_for_still_children
from harness.machine import procfs
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
    freezer = Freezer(child)
    with pytest.raises(PeerGone):
        freezer.thaw()
    # It may have ended with an answer, which counts.
    freezer.freeze()
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
        signal.signal(signal.SIGUSR1, lambda *_: os.fork() and os.write(tell, b"2"))
        os.write(tell, b"1")
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


def test_who_has_no_text_for_a_name_is_seen_as_well():
    ready, tell = os.pipe()
    leader = os.fork()
    if leader == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(15, b"\xff) R", 0, 0, 0)
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, b"\xfe", 0, 0, 0)
            os.write(tell, b"1")
        while True:
            pass
    os.read(ready, 1)
    freezer = Freezer(leader)
    assert not freezer._still()
    assert [procfs.is_descendant(pid, [os.getpid()]) for pid in freezer.members()] == [True, True]
    freezer.freeze()
    freezer.settle()
    assert freezer._still()
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
def test_threads_beside_one_that_is_starting_a_process_stop_as_well():
    """The process's signal is given to the thread that waits in vfork, and does nothing there."""
    shared = memoryview(mmap.mmap(-1, 8)).cast("Q")
    clone, vfork = 56, 0x4000
    leader = os.fork()
    if leader == 0:
        os.setsid()

        def count():
            while True:
                shared[0] += 1

        threading.Thread(target=count, daemon=True).start()
        ctypes.CDLL(None).syscall(clone, vfork | signal.SIGCHLD, 0, 0, 0, 0)
        while True:
            signal.pause()
    while shared[0] < 1000:
        time.sleep(0.01)
    time.sleep(0.2)
    freezer = Freezer(leader)
    for _ in range(3):
        freezer.freeze()
        freezer.settle()
        then = shared[0]
        time.sleep(0.05)
        assert shared[0] == then
        freezer.thaw()
        while shared[0] == then:
            time.sleep(0.001)
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)


def test_who_cannot_be_looked_at_is_not_still(monkeypatch):
    """Not as one that is gone."""
    monkeypatch.setattr(Path, "read_text", mock.Mock(side_effect=PermissionError))
    with pytest.raises(PermissionError):
        Freezer(os.getpid()).settle()


def test_what_a_member_did_that_is_new_is_told(counting):
    freezer, _ = counting
    freezer._known = set()
    freezer.mark()
    freezer.freeze()
    assert not freezer.settle()
    assert freezer.worked_us() > 0


def test_what_a_member_did_that_is_gone_is_told():
    """It was reaped at once, and nobody has a figure of it any more."""
    leader = os.fork()
    if leader == 0:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while os.fork():
            signal.pause()
        while True:
            pass
    try:
        freezer = Freezer(leader)
        while len(members := list(freezer.members())) < 2:
            time.sleep(0.01)
        freezer.freeze()
        freezer.settle()
        freezer.mark()
        freezer.thaw()
        while (seen := freezer.worked_us()) == 0:
            time.sleep(0.01)
        freezer.freeze()
        freezer.settle()
        os.kill(members[1], signal.SIGKILL)
        while Path(f"/proc/{members[1]}").exists():
            time.sleep(0.01)
        assert freezer.worked_us() >= seen
        # It should have stood still, and did not.
        assert not freezer.settle()
        freezer.mark()
        assert freezer.settle()
        assert freezer.worked_us() == 0
    finally:
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

    def look(pid: int) -> list[int]:
        freezer.moved = True
        return children[pid]

    with mock.patch("harness.machine.procfs.children", look):
        assert list(freezer.members()) == [5, 6, 77]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
@pytest.mark.parametrize(("call", "waits"), [("58 0x0", True), ("435 0x1", True), ("296 0x3", False), ("", True)])
def test_only_who_starts_a_process_waits_for_it(call, waits, tmp_path):
    """A dead child beside a long write would pass for one that is being started."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    (tmp_path / "children").write_text(f"{child} ")
    (tmp_path / "syscall").write_text(call)
    assert _waits_for_still_children(tmp_path) == waits
    os.waitpid(child, 0)
