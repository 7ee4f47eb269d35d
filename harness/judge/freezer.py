"""A runner and all that it started, stood still and let go from outside.

A runner leads a process group that nobody in it can leave (the sandbox sees to that), so one signal reaches all of it.
It runs in its own turns only: what stands still can neither work ahead, nor after its time, nor beside another's turn.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from harness.machine import procfs
from harness.wire.channel import DeadlineExceeded, PeerGone

# Stopped, traced and stopped, dead, or about to be.
STILL = "TtZX"
# A thread in the middle of a disk's or a driver's work stops after it.
SETTLE_S = 10.0


class Freezer:
    """The process group that `leader` leads."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self._tasks = Path(f"/proc/{leader}/task")
        self._known = {leader}
        self._used_ns: dict[int, int] = {}

    def freeze(self) -> None:
        """Have every member stop. Each is on its way to a standstill when this returns. Raises PeerGone."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let every member go on. Raises PeerGone."""
        self._signal(signal.SIGCONT)

    def mark(self) -> None:
        """From here on `worked_us` counts."""
        self._used_ns = {pid: _used_ns(pid) for pid in self._known}

    def worked_us(self) -> float:
        """What the members computed since `mark`, on all cores together, in microseconds.

        One that is stopped in the middle of a system call goes on with that, before anybody looks at it.
        """
        return sum(max(0, _used_ns(pid) - before) for pid, before in self._used_ns.items()) / 1e3

    def settle(self) -> bool:
        """Wait until every member stands still. Raises DeadlineExceeded.

        Whether all did at the first look, and none is a stranger to `worked_us`.
        """
        known = self._used_ns
        if self._still():
            return all(pid in known for pid in self._known)
        deadline = time.monotonic() + SETTLE_S
        while not self._still():
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"a thread does not stop in {SETTLE_S:g} s")
        return False

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.leader, number)
        except ProcessLookupError:
            raise PeerGone("its process group is gone") from None

    def _still(self) -> bool:
        """A thread may start others until it has stopped, so only a list in which all have can be relied on."""
        seen = set()
        for pid in self.members():
            if not _is_still(Path(f"/proc/{pid}/task")):
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
                    waiting += _children(Path(f"/proc/{pid}/task"))
            waiting = [pid for pid in self._adopted() if pid not in seen]

    def _adopted(self) -> list[int]:
        parent = _fields(Path(f"/proc/{self.leader}/stat"))[1:2]
        adopted = [pid for pid in _children(Path(f"/proc/{parent[0]}/task")) if pid != self.leader] if parent else []
        return [pid for pid in adopted if _fields(Path(f"/proc/{pid}/stat"))[2:3] == [str(self.leader)]]


def _used_ns(pid: int) -> int:
    """The time that all threads of a process were on a core; 0 of one that is gone."""
    try:
        # As clock_getcpuclockid has it, which Python lacks.
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _is_still(tasks: Path) -> bool:
    """Whether every thread stands still, or has ended."""
    try:
        threads = os.listdir(tasks)
    except OSError:
        return True
    return all(
        state in STILL or (state == "D" and _waits_for_a_still_child(tasks / thread))
        for thread in threads
        for state in _fields(tasks / thread / "stat")[:1]
    )


def _waits_for_a_still_child(task: Path) -> bool:
    """As a thread that is starting a process does, in vfork, until that has begun; it runs nothing before."""
    children = procfs.read(task / "children").split()
    states = [state for pid in children for state in _fields(Path(f"/proc/{pid}/stat"))[:1]]
    return bool(states) and all(state in STILL for state in states)


def _children(tasks: Path) -> list[int]:
    """What the threads of a process have started; nothing of one that is gone."""
    try:
        return [int(pid) for thread in os.listdir(tasks) for pid in procfs.read(tasks / thread / "children").split()]
    except OSError:
        return []


def _fields(stat: Path) -> list[str]:
    """From the state on; the name before it may hold anything, brackets too. Nothing of one that is gone."""
    return procfs.read(stat).rpartition(")")[2].split()
