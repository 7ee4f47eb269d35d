"""Host memory of untrusted processes, watched from outside: RLIMIT_AS breaks CUDA, and cgroups are rarely ours."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

CAUSE = "host_memory"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# With less than this left on the machine, the largest untrusted family goes, whatever its own limit.
FLOOR_SHARE = 0.03


def too_large(watched: Mapping[int, int]) -> list[int]:
    """Of these processes (pid -> limit in bytes) those over their limit, and the largest where the machine runs out."""
    if not watched:
        return []
    found = [pid for pid, limit in watched.items() if private_bytes(pid) > limit]
    if not found and nearly_out():
        families = families_bytes(watched)
        found = [max(families, key=lambda pid: families[pid])]
    return found


def private_bytes(pid: int) -> int:
    """Resident memory that is the process's own; what it maps of the judge's is not counted. 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def memory() -> tuple[int, int]:
    """Bytes of memory that this machine has, and that it could still give out."""
    text = Path("/proc/meminfo").read_text()
    found = dict(re.findall(r"^(MemTotal|MemAvailable): +(\d+) kB", text, re.MULTILINE))
    return int(found["MemTotal"]) << 10, int(found["MemAvailable"]) << 10


def nearly_out() -> bool:
    """Whether the machine is about to run out of memory."""
    total, available = memory()
    return available < FLOOR_SHARE * total


def families_bytes(roots: Mapping[int, int]) -> dict[int, int]:
    """Memory of each of these processes together with all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    families = dict.fromkeys(roots, 0)
    for pid in parents:
        above = pid
        while above not in families and above in parents:
            above = parents[above]
        if above in families:
            families[above] += private_bytes(pid)
    return families
