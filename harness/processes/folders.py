"""Folders that untrusted processes could write to: making them, taking results out, and removing them. No torch.

This is the session's side of the boundary. Every process that could write there must have ended.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# A folder may hold any number of files. So long a slot waits for one to go; what is left goes on in the background, and
# at the end of all has so long.
SLOT_S, END_S = 10.0, 60.0
# For a process that was killed.
STOP_S = 5.0
# A folder is nobody's for a moment before its maker has locked it.
UNLOCKED_S = 60.0
# A file in each folder that is made here.
MARK = ".made-by-assay"
# Descriptors of this process's own, each of which holds a lock on its folder that ends with the process.
_locks: dict[Path, int] = {}


def temporary(kind: str) -> Path:
    """A new folder in the temporary folder, which other users may pass through, to be removed by `remove_at_end`.

    Before that, what other processes of this user's left that were killed is removed.
    """
    for place in Path(tempfile.gettempdir()).glob("assay-*.*"):
        if _is_left_over(place):
            remove(place)
    folder = Path(tempfile.mkdtemp(prefix=f"assay-{kind}.")).resolve()
    (folder / MARK).touch()
    _locks[folder] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(_locks[folder], fcntl.LOCK_EX)
    # A sandboxed process is another user.
    folder.chmod(0o711)
    return folder


def _is_left_over(place: Path) -> bool:
    """Whether a folder is this user's own, and no process that is alive made it."""
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A user may call a folder so, too.
        os.stat(MARK, dir_fd=folder, follow_symlinks=False)
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or time.time() - status.st_ctime < UNLOCKED_S:
            return False
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(folder)


@contextlib.contextmanager
def open_to_others() -> Iterator[None]:
    """Files and folders that this process and its children make meanwhile may be read by other users, whatever the
    umask, unless their maker says otherwise: sandboxed processes are other users."""
    with _Umask.lock:
        if not _Umask.users:
            _Umask.before = os.umask(0o022)
        _Umask.users += 1
    try:
        yield
    finally:
        with _Umask.lock:
            _Umask.users -= 1
            if not _Umask.users:
                os.umask(_Umask.before)


class _Umask:
    """Of this process, which has one for all its threads: what it was before the first of them changed it."""

    lock = threading.Lock()
    users = 0
    before = 0


def copy_out(folder: Path, name: str, target: Path, limit_bytes: int) -> int:
    """Copy a regular file `name` below `folder` to `target`, a new file that all may read; its size in bytes.

    No link is followed. Raises OSError, also for what is no such file or larger (EFBIG), and ValueError for what is no
    name.
    """
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        *above, last = PurePosixPath(name).parts or ("",)
        for part in above:
            below = _open_below(place, part, os.O_PATH | os.O_DIRECTORY)
            os.close(place)
            place = below
        # Not to wait for the other end of a pipe.
        source = _open_below(place, last, os.O_RDONLY | os.O_NONBLOCK)
    finally:
        os.close(place)
    with open(source, "rb") as reader:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{name[:100]} is not a regular file")
        if status.st_size > limit_bytes:
            raise OSError(errno.EFBIG, f"{name[:100]} is larger than {limit_bytes} bytes")
        with target.open("xb") as writer:
            shutil.copyfileobj(reader, writer)
    target.chmod(0o644)
    return status.st_size


def _open_below(folder: int, part: str, flags: int) -> int:
    if part in ("", "/", "..") or part.startswith("//"):
        raise ValueError(f"not a file name: {part!r}")
    return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def remove(folder: Path, timeout_s: float = SLOT_S) -> bool:
    """Remove `folder` and what is below it, however deep and whatever its permissions; whether it is gone.

    What takes longer than `timeout_s` goes on in the background: it may be all the room that others would have.
    """
    removal = _Removal(folder)
    try:
        removal.start()
    except (OSError, RuntimeError):
        # There is no room for a thread.
        return False
    removal.join(timeout_s)
    return not os.path.lexists(folder)


def removing() -> bool:
    """Whether some folder is still being removed."""
    return any(isinstance(thread, _Removal) for thread in threading.enumerate())


class _Removal(threading.Thread):
    """Removes a folder by processes of their own: shutil.rmtree recurses, and so a candidate that nests a thousand
    folders would end the session."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="removal", daemon=True)
        self.folder = folder.absolute()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> None:
        path = str(self.folder)
        delete = ["rm", "-rf", "--", path]
        # Hardly any needs it. chmod follows no link below a folder, but one that is in its place.
        unlock = [] if self.folder.is_symlink() else [["chmod", "-R", "u+rwX", "--", path], delete]
        for command in (delete, *unlock):
            if os.path.lexists(path):
                self._carry_out(command)

    def _carry_out(self, command: list[str]) -> None:
        with self._lock:
            if self._stopped:
                return
            try:
                self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            except OSError:
                # There is no room for a process.
                return
        self._process.wait()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self.join(STOP_S)


def _stop_below(folder: Path) -> None:
    for thread in threading.enumerate():
        if isinstance(thread, _Removal) and thread.folder.is_relative_to(folder.absolute()):
            thread.stop()


# No process of ours is left behind.
atexit.register(_stop_below, Path("/"))


def remove_at_end(folder: Path) -> None:
    """Remove a folder that nobody comes back to, and say so where it stays."""
    if folder in _locks:
        os.close(_locks.pop(folder))
    if not remove(folder, END_S):
        _stop_below(folder)
        print(
            f"{folder} is left: it could not be removed (in {END_S:g} s at the most); remove it by hand",
            file=sys.stderr,
        )
