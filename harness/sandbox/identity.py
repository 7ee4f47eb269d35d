"""Who an untrusted process is: a user of its own, with no capability and no way to gain one."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from harness.sandbox.syscalls import PR_SET_DUMPABLE, checked, libc, prctl, unshare

CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522
# No distribution gives out users this high; containers may map fewer.
FIRST_USER, LAST_USER = 0x40000000, 0x7FFFFFFF
CAN_BE_USERS = 60000


def become_unused_user(folder: str, devices: Iterable[str]) -> None:
    """As root: take a user and group that no other live process has, and the folder with them. Raises OSError.

    Two runs at once cannot collide, because the number follows from the process id.
    """
    user = unused_user(Path("/proc/self/uid_map").read_text(), os.getpid())
    if folder:
        os.chown(folder, user, user)
    os.setgroups(device_groups(devices))
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # A change of user leaves /proc/self to root, and CUDA reads and writes there.
    prctl(PR_SET_DUMPABLE, 1)


def unused_user(uid_map: str, pid: int) -> int:
    """The user id for a process, among those that the user namespace maps. Raises OSError where it maps too few."""
    first, count = 0, 0
    for line in uid_map.splitlines():
        begin, _, length = (int(word) for word in line.split())
        if length > count:
            first, count = begin, length
    if first + count > FIRST_USER + pid:
        return FIRST_USER + pid
    # A small container: the upper part of what there is.
    free = count - CAN_BE_USERS // 10
    if free < CAN_BE_USERS // 2:
        raise OSError(f"only {count} user ids are mapped in this container")
    return first + count - 1 - pid % free


def device_groups(devices: Iterable[str]) -> list[int]:
    """Groups that these device files are reserved for, if they are."""
    nodes = [os.stat(device) for device in devices]
    reserved = (node for node in nodes if stat.S_ISCHR(node.st_mode) and node.st_mode & 0o006 != 0o006)
    return sorted({node.st_gid for node in reserved if node.st_gid})


def enter_user_namespace() -> None:
    """Not as root: a user namespace in which this user is itself. Raises OSError.

    Processes outside can then not be traced, and the namespaces that follow can be had.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER, "user")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def drop_capabilities() -> None:
    """Give up every capability, for this process and what it executes. Raises OSError."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    checked(libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(bytes(24))), "capset")
