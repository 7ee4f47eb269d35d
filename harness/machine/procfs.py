"""What /proc tells of processes; empty where it tells nothing. No torch."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")


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
    """The fields of /proc/PID/stat from the state on (its name may hold anything); empty where there is none."""
    return read(PROC / str(pid) / "stat").rpartition(")")[2].split()


def read(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
