"""The keeper: a small process behind the forking parent, which ends whatever that leaves when it is killed itself.

It is the forking parent's parent, and a subreaper: what outlives the forking parent becomes the keeper's child.
"""

from __future__ import annotations

import os
import signal
import time

from harness.processes import families
from harness.sandbox.syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

# As long as a process may be stuck in the kernel before it dies.
END_S = 60.0


def stand_behind() -> None:
    """Fork. Returns in the child, which gets SIGTERM if the parent dies; the parent keeps, and never returns."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    pid = os.fork()
    if pid == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        return
    # The session must see the control socket close when the child is gone.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.waitpid(pid, 0)
    end_children()
    os._exit(0)


def end_children() -> None:
    """Kill the children of this process and their groups, and those that are adopted by it meanwhile."""
    deadline = time.monotonic() + END_S
    while time.monotonic() < deadline and (left := families.children()):
        for pid in left:
            families.end(pid)
        time.sleep(families.PAUSE_S)
