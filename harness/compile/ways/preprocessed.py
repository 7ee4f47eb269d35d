"""What a compilation that failed over smaller headers would read over torch's own, as the preprocessor writes it.

That settles whether torch's headers know a name: whatever macros put together is put together there. Standard library
only.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compile.ways.nvcc_steps import PassFailed, Steps

SOURCES = (".cpp", ".cu", ".cc", ".cxx", ".c")
# Which file the lines after it are from.
MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)"', re.MULTILINE)
# Ninja's words about what failed: the file that was to be made, and on the next line the command.
FAILED = re.compile(r"^FAILED: (?:\[code=\d+\] )?(?P<object>\S+\.o)\b.*\n(?P<command>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Preprocessed:
    """`texts` are the preprocessor's output with definitions of macros in it (`-E -dD`), one for each pass over a file,
    and `source` is the file as written."""

    texts: Sequence[str]
    source: str

    def knows(self, name: str) -> bool:
        """Whether a header has this name, or the source has it more often than it was written, by a macro."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        written = len(word.findall(self.source))
        return any(_knows(text, word, written) for text in self.texts)


def _knows(text: str, word: re.Pattern[str], written: int) -> bool:
    own = 0
    begin, file = 0, ""
    for marker in [*MARKER.finditer(text), None]:
        end = marker.start() if marker else len(text)
        if Path(file).suffix in SOURCES:
            own += len(word.findall(text, begin, end))
        elif word.search(text, begin, end):
            return True
        if marker:
            begin, file = marker.end(), marker[1]
    return own > written


def by_command(said: str, nvcc: str, ours: Iterable[str], folder: Path) -> Preprocessed | None:
    """What the failed command in a build's output reads without the include folders `ours`; None if that can't be had.

    `folder` is where the build ran; `nvcc`, if not empty, compiled its kernel files.
    """
    failed = FAILED.search(said)
    if failed is None:
        return None
    words = shlex.split(failed["command"])
    first = next((index for index, word in enumerate(words) if word.startswith(("-D", "-M"))), 1)
    by_nvcc = any("nvcc" in word for word in words[:first])
    flags = without(words[first:] if by_nvcc else words[1:], ours)
    try:
        texts = of_nvcc(nvcc or words[0], flags, folder) if by_nvcc else [of_cxx(words[0], flags, folder)]
        # Also what torch wrote into it.
        files = [folder / word for word in flags if Path(word).suffix in SOURCES]
        return Preprocessed(texts, "\n".join(file.read_text(errors="replace") for file in files))
    except (PassFailed, OSError):
        return None


def without(flags: Sequence[str], ours: Iterable[str]) -> list[str]:
    """The flags without these include folders, and without a header of ours that comes before all else."""
    folders = {f"-I{folder}" for folder in ours}
    return [word for word in _without_option(flags, "-include") if word not in folders]


def of_cxx(compiler: str, flags: Sequence[str], folder: Path) -> str:
    """What g++ or clang reads. Raises PassFailed."""
    command = [compiler, *_without_option(flags, "-o"), "-E", "-dD"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=folder)
    if done.returncode:
        raise PassFailed(f"the preprocessor: {done.stderr[-500:]}")
    return done.stdout


def of_nvcc(nvcc: str, flags: Sequence[str], folder: Path) -> list[str]:
    """What nvcc reads for the host and for the device. Raises PassFailed."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return Steps(nvcc, list(flags), Path(scratch)).preprocessed("-E -dD")


def _without_option(flags: Sequence[str], option: str) -> list[str]:
    """The flags without this one and its argument."""
    return [word for before, word in zip(["", *flags], flags, strict=False) if option not in (before, word)]
