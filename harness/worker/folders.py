"""Removing folders that a candidate could write to. No torch: this is the session's side of the boundary."""

from __future__ import annotations

import subprocess
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove `folder` and what is below it, however deep and whatever its permissions; what cannot go stays.

    shutil.rmtree recurses, and so a candidate that nests a thousand folders would end the session.
    """
    path = str(folder.absolute())
    for command in (["chmod", "-R", "u+rwX", "--", path], ["rm", "-rf", "--", path]):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
