"""System calls that Python has no function for, with errors as OSError."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# The same number everywhere.
OPENAT2 = 437
AT_FDCWD = -100
RESOLVE_NO_SYMLINKS = 0x04

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def checked(result: int, call: str) -> int:
    """`result`, or OSError named after the call where it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Raises OSError."""
    checked(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def unshare(flags: int, name: str) -> None:
    """Leave the parent's namespaces. Raises OSError."""
    checked(libc.unshare(flags), f"unshare {name}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Raises OSError."""
    words = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    checked(libc.mount(*words), f"mount {kind or 'bind'} on {target}")


class _Action(ctypes.Structure):
    """glibc's struct sigaction."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


SA_NOCLDSTOP = 1


def hear_of_ends_only() -> None:
    """Keep the handler of SIGCHLD for children that end: not for those that stop and go on. Raises OSError."""
    action = _Action()
    checked(libc.sigaction(signal.SIGCHLD, None, ctypes.byref(action)), "sigaction")
    action.flags |= SA_NOCLDSTOP
    checked(libc.sigaction(signal.SIGCHLD, ctypes.byref(action), None), "sigaction")


def open_place(path: str) -> int:
    """A file or folder as a descriptor that only names it. Raises OSError where any part of `path` is a link."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS)
    return checked(libc.syscall(OPENAT2, AT_FDCWD, os.fsencode(path), how, ctypes.c_size_t(len(how))), f"open {path}")
