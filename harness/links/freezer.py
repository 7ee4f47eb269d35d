"""Stops and continues a runner and all processes that it started (SIGSTOP, SIGCONT).

A runner leads a process group that nobody in it can leave (the sandbox sees to that), so one signal reaches all of it.
It runs in its own turns only: what stands still can neither work ahead, nor after its time, nor beside another's turn.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator, Set
from pathlib import Path

from harness.machine import procfs
from harness.wire.channel import DeadlineExceeded, PeerGone

# Stopped, traced and stopped, dead, or about to be.
STILL = "TtZX"
# The calls that start a process, by instruction set: clone, fork, vfork, clone3.
STARTING = {"x86_64": {"56", "57", "58", "435"}, "aarch64": {"220", "435"}}
# A thread in the middle of a disk's or a driver's work stops after it.
SETTLE_S = 10.0

_libc = ctypes.CDLL(None)


class Freezer:
    """The process group that `leader` leads."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self._known = {leader}
        self._used_ns: dict[int, int] = {}
        # What they had used when somebody last looked, and who was there at `mark`.
        self._last_ns: dict[int, int] = {}
        self._there: set[int] = set()

    def freeze(self) -> None:
        """Send SIGSTOP to every member; some may not have stopped yet when this returns.

        A group that has ended stands still, too: a runner that raised says so, and is gone by now.
        """
        with contextlib.suppress(PeerGone):
            self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue every member. Raises PeerGone."""
        self._signal(signal.SIGCONT)

    def mark(self) -> None:
        """From here on `worked_us` counts."""
        now_ns = {pid: _used_ns(pid) for pid in self._known}
        self._there = {pid for pid, used_ns in now_ns.items() if used_ns}
        self._used_ns = {pid: used_ns or self._last_ns.get(pid, 0) for pid, used_ns in now_ns.items()}
        self._last_ns = dict(self._used_ns)

    def worked_us(self) -> float:
        """What the members computed since `mark`, on all cores together, in microseconds.

        One that is stopped in the middle of a system call goes on with that, before anybody looks at it. Of one that is
        gone it is what was seen of it, at least.
        """
        members = self._known | self._used_ns.keys()
        self._look(members)
        # Of one that was not known then, all that it ever did: it was started since.
        return sum(max(0, self._last_ns.get(pid, 0) - self._used_ns.get(pid, 0)) for pid in members) / 1e3

    def settle(self) -> bool:
        """Wait until every member stands still. Raises DeadlineExceeded.

        Whether all did at the first look, none is a stranger to `worked_us`, and none has gone since `mark`.
        """
        if self._still():
            strangers = self._known - self._used_ns.keys()
            self._look(strangers)
            return not (strangers or self._there - self._known)
        deadline = time.monotonic() + SETTLE_S
        while not self._still():
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"a thread did not stop within {SETTLE_S:g} s")
        return False

    def _look(self, members: Set[int]) -> None:
        """Keep what they have used by now, for when they are gone."""
        self._last_ns |= {pid: used_ns for pid in members if (used_ns := _used_ns(pid))}

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.leader, number)
        except ProcessLookupError:
            raise PeerGone("its process group is gone") from None

    def _still(self) -> bool:
        """A thread may start others until it has stopped, so only a list in which all have can be relied on."""
        seen = set()
        for pid in self.members():
            if not _is_still(pid):
                return False
            seen.add(pid)
        self._known = seen
        return True

    def members(self) -> Iterator[int]:
        """The leader first, and what it started; orphans among that are its parent's children, who adopts them.

        These come last, until there are no more: a parent that ends meanwhile leaves its children there.
        """
        seen: set[int] = set()
        waiting = [self.leader]
        while waiting:
            while waiting:
                pid = waiting.pop()
                if pid not in seen:
                    seen.add(pid)
                    yield pid
                    waiting += procfs.children(pid)
            waiting = [pid for pid in self._adopted() if pid not in seen]

    def _adopted(self) -> list[int]:
        parent = procfs.stat_of(procfs.PROC / str(self.leader))[1:2]
        adopted = [pid for pid in procfs.children(int(parent[0])) if pid != self.leader] if parent else []
        return [pid for pid in adopted if procfs.stat_of(procfs.PROC / str(pid))[2:3] == [str(self.leader)]]


def _used_ns(pid: int) -> int:
    """The time that all threads of a process were on a core; 0 of one that is gone."""
    try:
        # As clock_getcpuclockid has it, which Python lacks.
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _is_still(pid: int) -> bool:
    """Whether every thread stands still, or has ended.

    One may be in the middle of starting a process that stands still. The kernel gives a process's signal to such a
    thread, which does not act on it, and the others hear nothing of it: they are told by themselves.
    """
    tasks = procfs.PROC / str(pid) / "task"
    try:
        threads = os.listdir(tasks)
    except procfs.GONE:
        return True
    moving = {thread: state for thread in threads for state in procfs.stat_of(tasks / thread)[:1] if state not in STILL}
    if list(moving.values()) == ["D"] and _waits_for_still_children(tasks / next(iter(moving))):
        return True
    if len(threads) > 1:
        for thread in moving:
            _stop_thread(pid, int(thread))
    return not moving


def _stop_thread(pid: int, thread: int) -> None:
    """Have one thread take a SIGSTOP for all of its process, which may be gone."""
    _libc.tgkill(pid, thread, signal.SIGSTOP)


def _waits_for_still_children(task: Path) -> bool:
    """As a thread that is starting a process does, in vfork, until that has begun; it runs nothing before.

    Any other call in which a thread waits so goes on by itself. Where the kernel does not say which one it is, what it
    does is counted (`worked_us`).
    """
    called = procfs.read(task / "syscall").split()[:1]
    if called and called[0] not in STARTING.get(os.uname().machine, called):
        return False
    children = procfs.read_of(task / "children").split()
    states = [state for pid in children for state in procfs.stat_of(procfs.PROC / pid)[:1]]
    return bool(states) and all(state in STILL for state in states)
