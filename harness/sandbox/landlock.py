"""Landlock: which files a process may see and touch, whom it may signal, which sockets it may reach. Linux 5.13 and up.

Rules name a file or everything below a folder; what no rule names is denied, for good and for all descendants.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from harness.sandbox.syscalls import checked, libc, open_place

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
# Number of file rights that each version of the interface knows, from version 1 on.
FILE_RIGHTS = (13, 14, 15, 15, 16)
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
NET_BIND_AND_CONNECT = 0b11
SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
ABI_OF_NET, ABI_OF_SCOPES = 4, 6

READ = EXECUTE | READ_FILE | READ_DIR
READ_WRITE = READ | WRITE_FILE | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV
EVERYTHING = (1 << 16) - 1 & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)


def abi() -> int:
    """The version of the kernel's interface. Raises OSError where there is none."""
    return checked(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1), "landlock_create_ruleset")


def prepare(rules: Iterable[tuple[str, int]]) -> int:
    """A ruleset of (path, rights) as a descriptor. Raises OSError.

    Paths that do not exist are left out, and so are those with a link in them: what it leads to may have changed hands.
    """
    version = abi()
    handled = (1 << FILE_RIGHTS[min(version, len(FILE_RIGHTS)) - 1]) - 1
    fields = [handled]
    if version >= ABI_OF_NET:
        fields.append(NET_BIND_AND_CONNECT)
    if version >= ABI_OF_SCOPES:
        fields.append(SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = checked(
        libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock_create_ruleset"
    )
    for path, rights in rules:
        try:
            place = open_place(path)
        except OSError:
            continue
        allowed = rights & handled
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            allowed &= OF_FILES
        rule = struct.pack("=Qi", allowed, place)
        try:
            checked(libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
        finally:
            os.close(place)
    return ruleset


def pin(paths: Iterable[str]) -> None:
    """Keep files of /proc in the kernel's memory for as long as this process lives.

    A rule holds for an inode, and /proc makes a new one for a file that was dropped when memory was short.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            os.open(path, os.O_PATH | os.O_CLOEXEC)


def restrict(ruleset: int) -> None:
    """Put the ruleset in force for this thread and its descendants; needs no_new_privs. Raises OSError."""
    checked(libc.syscall(RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
