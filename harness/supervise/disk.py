"""Whether a failure may have come of a full disk, or of the machine's full table of open files, which is seldom the
doing of whoever noticed it. No torch.

The number of files is not bounded, so one candidate can fill the temporary folder while another is built or run.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from harness.processes import folders
from harness.records import Outcome, Status

# Less than a build needs, and so few files.
NEARLY_FULL_BYTES, NEARLY_FULL_FILES = 64 << 20, 1000
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.ENFILE)
# How many files the machine has open, a number that is none, and how many it may have; nearly as many are too many.
OPEN_FILES = Path("/proc/sys/fs/file-nr")
NEARLY_ALL = 0.9
WORDS = tuple(os.strerror(number) for number in ERRORS)
FULL = "disk_full"
# Millions of files take minutes to remove; whoever waits for that looks so often.
ROOM_S, LOOK_S = 300.0, 0.25
# What a process that finds no room ends by, also without saying so.
SYMPTOMS = (
    *(Status.COMPILE_ERROR, Status.LOAD_ERROR, Status.RUNTIME_ERROR, Status.CRASHED),
    *(Status.RESOURCE_LIMIT, Status.REJECTED, Status.INVALID_REFERENCE),
)


def is_full(folder: Path) -> bool:
    """Whether there is hardly any room on the disk of `folder`, or for open files."""
    if _too_many_open():
        return True
    room = os.statvfs(folder)
    # Some file systems count no files.
    few_files = room.f_files > 0 and room.f_favail < NEARLY_FULL_FILES
    return few_files or room.f_bavail * room.f_frsize < NEARLY_FULL_BYTES


def wait_for_room(folder: Path, unwanted: Callable[[], bool] = lambda: False) -> None:
    """Wait while the disk of `folder` is full and a candidate's files are being removed, for ROOM_S at most, and not
    once it is `unwanted`."""
    until = time.monotonic() + ROOM_S
    while folders.removing() and is_full(folder) and time.monotonic() < until and not unwanted():
        time.sleep(LOOK_S)


def may_be_to_blame(outcome: Outcome | None, folder: Path) -> bool:
    """Whether a failure with temporary files in `folder` may have come of a full disk."""
    if outcome is None or (outcome.status not in SYMPTOMS and outcome.reason != FULL):
        return False
    said = f"{outcome.message} {outcome.evidence}"
    return any(words in said for words in WORDS) or is_full(folder)


def blamed(outcome: Outcome, folder: Path, *, others: bool) -> Outcome:
    """What becomes of a failure that says twice that the disk was full. `others`: somebody else had files there, and
    the first time it was full also without this candidate's.

    What is said alone is no excuse: anybody can say it.
    """
    if others or is_full(folder):
        return full(folder, outcome)
    return outcome


def _too_many_open() -> bool:
    are_open, _, most = map(int, OPEN_FILES.read_text().split())
    return are_open > NEARLY_ALL * most


def full(folder: Path, seen: Outcome | OSError) -> Outcome:
    """The outcome of a job that found no room, whoever took it; the next run tries again."""
    said = seen.message if isinstance(seen, Outcome) else str(seen)
    if os.strerror(errno.ENFILE) in said or _too_many_open():
        what = "the machine had as many files open as it may (fs.file-max), maybe others'"
        mend = "close some, or let less run at the same time"
    else:
        room = os.statvfs(folder)
        left = f"{room.f_bavail * room.f_frsize / 1e9:.2f} GB and {room.f_favail} files are free there now"
        what = f"the disk of {folder.parent} was full, maybe of others' files ({left})"
        mend = "free some, or set TMPDIR to a folder on a larger disk"
    return Outcome(
        status=Status.HARNESS_ERROR,
        reason=FULL,
        message=f"{what}; {mend}: {said}",
        evidence=seen.evidence if isinstance(seen, Outcome) else {},
    )
