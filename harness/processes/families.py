"""Families: a forked child that leads a process group, and all that it started. They end together, and at once.

Descendants cannot leave the group (the seccomp filter answers setsid and setpgid itself), and the kernel sends a signal
to a group in one step, which no fork gets around. Where that layer is missing, a user id of the child's own does the
same; where neither is there, orphans are killed until none is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

# Where a process of them is stuck in the kernel, in a driver say, nobody waits longer.
END_S = 10.0
PAUSE_S = 0.001


class Family:
    """What is known of one: `pid` leads it, `user` is its own user id where it is to be killed by that, else 0.

    `code` is set when the leader has ended, as os.waitstatus_to_exitcode gives it; `cause` says why we killed it, or
    what it said in `report`, a pipe that only its first steps can write to, before any foreign code is in it.
    `free_bytes` is what the machine could still give out as we killed it for its memory.
    """

    def __init__(self, identity: int, pid: int, user: int = 0, report: int = -1) -> None:
        self.identity = identity
        self.pid = pid
        self.user = user
        self.cause = ""
        self.free_bytes = 0
        self._report = report
        self.code: int | None = None

    def kill(self) -> None:
        """Kill every member. The leader must not have been reaped: until then nobody else can have its number."""
        # By itself, too, where it leads no group yet.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)
        if self.user:
            _kill_all_of(self.user)

    def bury(self) -> None:
        """If the leader has ended, kill the others, reap it, and keep its exit code."""
        if self.code is not None or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        self.kill()
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.cause = self._reported() or self.cause

    def _reported(self) -> str:
        if self._report < 0:
            return ""
        try:
            return os.read(self._report, 100).decode()
        except BlockingIOError:
            return ""
        finally:
            os.close(self._report)

    def is_gone(self) -> bool:
        """Whether no process of it is left, not even a dead one."""
        if self.code is None:
            return False
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            # Signal 0: the number may be a stranger's by now.
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        return False


class Families:
    """Those that a forking parent, which is a subreaper, has at present. `ours` is a child that is none of them."""

    def __init__(self, ours: int = 0) -> None:
        self._ours = ours
        self._present: dict[int, Family] = {}

    def add(self, family: Family) -> None:
        self._present[family.pid] = family

    def by_pid(self, pid: int) -> Family:
        return self._present[pid]

    def kill(self, identity: int) -> None:
        for family in self._present.values():
            if family.identity == identity and family.code is None:
                family.kill()

    def led(self) -> set[int]:
        """The leaders that live."""
        return {pid for pid, family in self._present.items() if family.code is None}

    def there(self) -> set[int]:
        """The leaders, dead ones too, of those of which something may be left."""
        return set(self._present)

    def ending(self) -> bool:
        """Whether there are some without a leader: `ended` is to be asked again soon."""
        return any(family.code is not None for family in self._present.values())

    def ended(self) -> list[Family]:
        """Those of which nothing is left any more; asked for once each."""
        for family in self._present.values():
            family.bury()
        strays = self._kill_strays()
        gone = [family for family in self._present.values() if family.is_gone() and not strays]
        for family in gone:
            del self._present[family.pid]
        return gone

    def end(self) -> None:
        """End all of them."""
        for pid in self.led():
            self._present[pid].kill()
        deadline = time.monotonic() + END_S
        while self._present and time.monotonic() < deadline:
            if not self.ended():
                time.sleep(PAUSE_S)

    def _kill_strays(self) -> bool:
        """Kill what was adopted and belongs to no family, having left its group; whether there was any."""
        strays = False
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                if pid not in (self._ours, *self._present) and os.getpgid(pid) not in self._present:
                    strays = True
                    end(pid)
        return strays


def end(pid: int) -> None:
    """Kill a child of this process with its group, which must not be our own, and reap it if it is dead."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) != os.getpgrp():
            os.killpg(os.getpgid(pid), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def children() -> list[int]:
    """The children of this process, which has one thread; adopted ones and dead ones, too."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _kill_all_of(user: int) -> None:
    """Kill every process of a user id, in one step: what a process of that user means by -1."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(user, user, user)
            if os.getresuid() == (user, user, user):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
