"""Standard output and error: what is printed ends no command of ours, and is none of the service's that runs it."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any, TextIO

# What services of continuous integration take for a command to them in a job's output: GitHub's and Azure's anywhere in
# a line, TeamCity's and GitHub's newer ones at its beginning. Candidates write what is printed here in part.
_ANYWHERE = re.compile(r"##(?=[\w.]*\[)")
_AT_BEGINNING = re.compile(r"^(\s*):(?=:)")


def see_to_them() -> None:
    """Nothing that is printed ends a command: what an encoding lacks is escaped, and what is said to closed streams is
    said to nobody. Where no terminal is, no line is a command to who reads it."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            # The next file that is opened would have its number; this one has.
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, descriptor)
            os.set_inheritable(descriptor, True)
            if opened != descriptor:
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - open as long as the process
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
        if mode == "w" and not isinstance(stream, Uncommanding) and not stream.isatty():
            setattr(sys, name, Uncommanding(stream))


def without_commands(line: str) -> str:
    """One line with a space in each command to a service of continuous integration."""
    return _AT_BEGINNING.sub(r"\1: ", _ANYWHERE.sub("# #", line))


class Uncommanding:
    """A stream of text whose lines are no commands (`without_commands`); in all else the `stream` given."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # What was said of the last line.
        self._begun = ""

    def write(self, text: str) -> int:
        # A service ends a line at each of both.
        *lines, self._begun = re.split(r"(?<=[\r\n])", self._begun + text)
        self._stream.write("".join(map(without_commands, lines)))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        begun, self._begun = self._begun, ""
        self._stream.write(without_commands(begun))
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
