"""Namespaces: no network, no host name, and a file system in which shared memory is private and locked folders open."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import tempfile
from collections.abc import Iterable, Set
from pathlib import Path

from harness.sandbox.syscalls import checked, libc, mount, open_place, unshare

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 0x1
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
# CUDA and multiprocessing keep small things there; a candidate's data has its own folder.
SHM_BYTES = 1 << 30
# Each takes a kilobyte of the kernel's own memory, even if it is empty. By default there may be half as many as the
# machine has pages.
SHM_FILES = 1 << 16
TMP = os.path.realpath("/tmp")
# How the part of a process's own folder is called that it has for /tmp.
OWN_TMP = ".tmp."


def leave() -> None:
    """Enter a network without interfaces, a host name of one's own, and a private view of mounts. Raises OSError."""
    unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS, "net, uts, mnt")
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("assay", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={SHM_BYTES},nr_inodes={SHM_FILES}")


def have_own_tmp(folder: str, readable: Iterable[str]) -> bool:
    """Put a part of `folder` in the place of /tmp, which many name without asking for TMPDIR; needs a private view of
    mounts. What is `readable` there is bound into it, to be read only, and so is `folder`.

    Returns whether it is there: not where /tmp itself is readable, or there is none. Raises OSError.
    """
    there = {path for path in readable if path.startswith(f"{TMP}/") and os.path.exists(path)}
    if not os.path.isdir(TMP) or TMP in readable:
        return False
    # Under a new name: whoever had the folder before has not made a link of it.
    own = tempfile.mkdtemp(prefix=OWN_TMP, dir=folder)
    # The user may be another one yet.
    os.chmod(own, 0o1777)
    there = {path for path in there if not any(above in there for above in folders_above(path))}
    places = {path: open_place(path) for path in sorted({*there, folder}) if path.startswith(f"{TMP}/")}
    try:
        mount(own, TMP, "", MS_BIND)
        for path, place in places.items():
            _bind(place, path)
            if path != folder:
                _set_mount(path, AT_RECURSIVE, set_bits=MOUNT_ATTR_RDONLY)
        # What leads to these is nobody's to change, either, whoever made it.
        for top in sorted({"/".join(path.split("/")[: TMP.count("/") + 2]) for path in places} - set(places)):
            mount(top, top, "", MS_BIND | MS_REC)
            _set_mount(top, 0, set_bits=MOUNT_ATTR_RDONLY)
    finally:
        for place in places.values():
            os.close(place)
    os.chdir(folder)
    return True


def make_read_only(folder: str, *, own_tmp: bool = False) -> None:
    """Close everything but `folder`, `own_tmp`, /dev/shm and /proc to changes; needs a private view of mounts. Raises
    OSError.

    Whoever owns a file may change its mode, times and attributes, which Landlock does not look at.
    """
    _set_mount("/", AT_RECURSIVE, set_bits=MOUNT_ATTR_RDONLY)
    with contextlib.suppress(OSError):
        # Where it was closed before us, it stays so.
        _set_mount("/proc", 0, clear_bits=MOUNT_ATTR_RDONLY)
    _set_mount(os.path.realpath("/dev/shm"), 0, clear_bits=MOUNT_ATTR_RDONLY)
    if own_tmp:
        _set_mount(TMP, 0, clear_bits=MOUNT_ATTR_RDONLY)
    if folder:
        mount(folder, folder, "", MS_BIND)
        _set_mount(folder, 0, clear_bits=MOUNT_ATTR_RDONLY)
        # The working directory still lies in the mount below.
        os.chdir(folder)


def _set_mount(path: str, flags: int, *, set_bits: int = 0, clear_bits: int = 0) -> None:
    attributes = struct.pack("=4Q", set_bits, clear_bits, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    checked(libc.syscall(MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, attributes, size), f"mount_setattr {path}")


def open_locked(paths: Set[str]) -> None:
    """Make `paths` reachable for a user who may not pass through /root, say; needs a private view of mounts.

    The topmost locked folder is covered by an empty one, into which only these paths are bound. Raises OSError.
    """
    # What lies below another one comes with it.
    roots = [path for path in paths if not any(above in paths for above in folders_above(path))]
    known: dict[str, bool] = {}
    tops = {path: locked_folder(path, known) for path in roots}
    # Opened before anything is covered; the bind mounts then refer to what was there.
    places = {path: open_place(path) for path, top in tops.items() if top and os.path.exists(path)}
    try:
        for top in sorted({top for path in places if (top := tops[path])}):
            mount("assay", top, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
        for path in sorted(places):
            _bind(places[path], path)
    finally:
        for place in places.values():
            os.close(place)


def _bind(place: int, path: str) -> None:
    """Put what was opened as `place` at `path`."""
    if stat.S_ISDIR(os.fstat(place).st_mode):
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        Path(path).touch()
    mount(f"/proc/self/fd/{place}", path, "", MS_BIND | MS_REC)


def locked_folder(path: str, known: dict[str, bool]) -> str | None:
    """The topmost folder above `path` that other users may not pass through; None where they can reach it.

    `known` keeps what was seen of folders from call to call.
    """
    for folder in folders_above(path):
        if folder not in known:
            try:
                known[folder] = not os.stat(folder).st_mode & stat.S_IXOTH
            except OSError:
                known[folder] = False
        if known[folder]:
            return folder
    return None


def folders_above(path: str) -> list[str]:
    """The folders that lead to an absolute path, from the root on."""
    parts = path.strip("/").split("/")[:-1]
    return ["/", *("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))]


def unreadable(paths: Iterable[str]) -> str:
    """The first of these files and folders that other users may not read, or an empty string."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
        if mode & needed != needed:
            return path
    return ""
