"""What every command needs of its surroundings, whatever it does: said once, before it begins."""

from __future__ import annotations

import os

from harness.commands import saying
from harness.errors import UsageError
from harness.processes import memory_floor

# The first of them that is set says where temporary files go; what it names in vain Python passes over in silence.
TEMPORARY = ("TMPDIR", "TEMP", "TMP")


def check() -> None:
    """Raises UsageError for a working folder that is gone, and for variables that could only be ignored."""
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError("the working folder is gone; change to one that exists") from error
    name = next((name for name in TEMPORARY if os.environ.get(name)), "")
    if name and not (os.path.isdir(os.environ[name]) and os.access(os.environ[name], os.W_OK | os.X_OK)):
        raise UsageError(f"{name} is {saying.said(os.environ[name])}, which is no folder to write to; set it to one")
    memory_floor.share()
