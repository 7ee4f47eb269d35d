"""What commands print of paths and other text from outside."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness import wording


def said(words: object) -> str:
    """Text as one printable line; it may quote paths and other text from outside."""
    return wording.plain(str(words), 2000, kept="")


def quoted(path: Path) -> str:
    """A path as a word of a command to be copied into a shell."""
    return said(shlex.quote(str(path)))
