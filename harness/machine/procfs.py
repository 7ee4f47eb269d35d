"""What /proc tells of processes; empty where it tells nothing. No torch."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")
# What a process, or a thread, that has ended answers.
GONE = (FileNotFoundError, ProcessLookupError)


def is_descendant(pid: int, ancestors: Collection[int]) -> bool:
    """Whether a process is one of `ancestors` or was started by one, as far as /proc tells."""
    for _ in range(64):
        if pid in ancestors:
            return True
        fields = stat(pid)
        if pid <= 1 or len(fields) < 2:
            return False
        pid = int(fields[1])
    return False


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty where it cannot be read."""
    return _fields(read(PROC / str(pid) / "stat"))


def stat_of(task: Path) -> list[str]:
    """The same of a process's or thread's folder in /proc, and empty only where it is gone. Raises OSError."""
    return _fields(read_of(task / "stat"))


def _fields(stat: str) -> list[str]:
    # The name before the state may hold anything, brackets too.
    return stat.rpartition(")")[2].split()


def rss_bytes(pid: int) -> int:
    """Memory that a process has in use; 0 where that cannot be read."""
    fields = read(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0


def children(pid: int) -> list[int]:
    """The processes that a process's threads have started and not yet waited for; nothing of one that is gone."""
    tasks = PROC / str(pid) / "task"
    try:
        threads = os.listdir(tasks)
    except GONE:
        return []
    return [int(child) for thread in threads for child in read_of(tasks / thread / "children").split()]


def read(path: Path) -> str:
    """A file's text, whatever bytes a process has put into its name; empty where it cannot be read."""
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


def read_of(path: Path) -> str:
    """The same of a process's file, for who relies on it: empty where the process is gone, and for no other reason.

    Raises OSError.
    """
    try:
        return path.read_text(errors="surrogateescape")
    except GONE:
        return ""
