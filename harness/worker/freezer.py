"""A runner and all that it started, stood still and let go from outside.

A runner leads a process group that nobody in it can leave (the sandbox sees to that), so one signal reaches all of it.
It runs in its own turns only: what stands still can neither work ahead, nor after its time, nor beside another's turn.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from harness.worker.channel import DeadlineExceeded, PeerGone

# Stopped, traced and stopped, dead, or about to be.
STILL = "TtZX"
# A thread in the middle of a disk's or a driver's work stops after it.
SETTLE_S = 10.0


class Freezer:
    """The process group that `leader` leads."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self._tasks = Path(f"/proc/{leader}/task")

    def freeze(self) -> None:
        """Have every member stop. Each is on its way to a standstill when this returns. Raises PeerGone."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let every member go on. Raises PeerGone."""
        self._signal(signal.SIGCONT)

    def settle(self) -> None:
        """Wait until every thread of the leader stands still. Raises DeadlineExceeded where one does not."""
        deadline = time.monotonic() + SETTLE_S
        while not self._still():
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"a thread does not stop in {SETTLE_S:g} s")

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.leader, number)
        except ProcessLookupError:
            raise PeerGone("its process group is gone") from None

    def _still(self) -> bool:
        """A thread may start others until it has stopped, so only a list in which all have can be relied on."""
        try:
            threads = os.listdir(self._tasks)
            return all(_state(self._tasks / thread / "stat") in STILL for thread in threads)
        except FileNotFoundError:
            # A thread that ended meanwhile, or all of them.
            return not self._tasks.exists()


def _state(stat: Path) -> str:
    """The name before it may hold anything, brackets too."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()[0]
