"""Which programs have a card open to compute on it, as NVML shows them. No torch."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import msgspec

from harness import wording
from harness.machine import procfs

# PROC_PID_INIT_INO of Linux: the number of the namespace that all processes of a machine are in.
ALL_PROCESSES = 0xEFFFFFFC
LONGEST_NAME = 40


class CardUser(msgspec.Struct, frozen=True, kw_only=True):
    """A program on a card. `name` is empty where /proc does not know it; it is what that program calls itself."""

    pid: int
    name: str
    memory_mib: int | None

    def __str__(self) -> str:
        known = [self.name] if self.name else []
        known += [f"process {self.pid}"]
        known += [f"{self.memory_mib} MiB"] if self.memory_mib is not None else []
        return ", ".join(known)


def on_card(uuid: str) -> list[CardUser] | None:
    """All of them; None where NVML does not say. In a container it shows none, or numbers of another namespace."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        return [_user(process) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except pynvml.NVMLError:
        return None


def others(users: list[CardUser] | None, own: Collection[int]) -> list[CardUser] | None:
    """Those of `users` that are neither processes of `own` nor their descendants; None where that cannot be told.

    It can if numbers are those of this namespace: if that is the whole machine's, or one of ours is among them.
    """
    if users is None:
        return None
    ours = {user.pid for user in users if procfs.is_descendant(user.pid, own)}
    if not ours and not _sees_all_processes():
        return None if users else []
    return [user for user in users if user.pid not in ours and (procfs.PROC / str(user.pid)).exists()]


def _user(process: Any) -> CardUser:
    name = wording.plain(procfs.read(procfs.PROC / str(process.pid) / "comm").strip(), LONGEST_NAME, kept="")
    used = process.usedGpuMemory
    return CardUser(pid=int(process.pid), name=name, memory_mib=None if used is None else int(used) >> 20)


def _sees_all_processes() -> bool:
    try:
        return os.stat(procfs.PROC / "self/ns/pid").st_ino == ALL_PROCESSES
    except OSError:
        return False
