"""Host memory of untrusted processes, watched from outside: RLIMIT_AS breaks CUDA, and cgroups are rarely ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.environment import available_memory_bytes

CAUSE = "host_memory"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# With less than this left on the machine, the largest untrusted family goes, whatever its own limit.
FLOOR_SHARE = 0.03


def too_large(watched: Mapping[int, int]) -> list[int]:
    """Of these processes (pid -> limit in bytes) those over their limit, and the largest where the machine runs out."""
    if not watched:
        return []
    sizes = {pid: family_bytes(pid) for pid in watched}
    # The first figure is quickly had, and counts what forked processes share once for each of them.
    found = [pid for pid, limit in watched.items() if sizes[pid] > limit and family_bytes(pid, own_share_bytes) > limit]
    if not found and nearly_out():
        found = [max(sizes, key=lambda pid: sizes[pid])]
    return found


def private_bytes(pid: int) -> int:
    """Resident memory that is the process's own; what it maps of the judge's is not counted. 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def own_share_bytes(pid: int) -> int:
    """Its own resident memory, and its part of what it shares with other processes, as after a fork.

    The kernel walks the whole address space for it. `private_bytes` where it may not be read.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return private_bytes(pid)
    found = re.search(r"^Pss_Anon:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else private_bytes(pid)


def family_bytes(pid: int, size: Callable[[int], int] = private_bytes) -> int:
    """Memory, by `size` (private_bytes), of a process and of the children that its main thread and theirs started."""
    total, waiting = 0, [pid]
    while waiting:
        member = waiting.pop()
        total += size(member)
        try:
            waiting += map(int, Path(f"/proc/{member}/task/{member}/children").read_text().split())
        except OSError:
            continue
    return total


def memory() -> tuple[int, int]:
    """Bytes of memory that this machine has, and that it could still give out."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES, available_memory_bytes()


def share() -> int:
    """The bytes that one untrusted process may have where nobody says otherwise: four fifths of what is free."""
    return memory()[1] * 4 // 5


def nearly_out() -> bool:
    """Whether the machine is about to run out of memory."""
    total, available = memory()
    return available < FLOOR_SHARE * total
