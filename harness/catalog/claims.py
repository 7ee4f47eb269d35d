"""`import.json`: where each file of an imported pack came from, and what its source claims about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from harness.errors import UsageError

MANIFEST = "import.json"
SCHEMA = 1
MOST_BYTES = 1 << 30

# What a source says of its candidate: its answers were right, wrong, or it was not compiled. Empty: it says nothing.
CORRECT, INCORRECT, NOT_COMPILED = "correct", "incorrect", "not_compiled"
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a source says about a candidate; `speedup` is over a baseline of theirs, which may not be ours.

    `time` is in the source's own unit. `said` are their own words for the status, where they have any.
    """

    status: str = ""
    speedup: Positive | None = None
    time: Positive | None = None
    said: str = ""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place in a source: a file by its path below it, a row of a table, a block of a text."""

    file: str
    row: str = ""
    block: str = ""

    def __str__(self) -> str:
        return ", ".join(part for part in (self.file, self.row, self.block) if part)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of the folder: its path in there, SHA-256, problem, and whence it came."""

    file: str
    sha256: str
    problem: str
    origin: Origin = msgspec.field(name="from")
    claim: Claim = Claim()


class ImportedProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the folder. `kernelbench`: it is the checkout's, not the pack's own."""

    file: str
    sha256: str
    origin: Origin = msgspec.field(name="from")
    kernelbench: bool


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a source that was not imported, and why."""

    origin: Origin = msgspec.field(name="from")
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All of an import."""

    source: str
    candidates: list[Imported]
    problems: list[ImportedProblem]
    left: list[Left]
    schema: int = SCHEMA


def read(path: Path) -> Manifest:
    """The manifest at `path`. Raises UsageError if it cannot be read; OSError if there is none."""
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(MOST_BYTES), type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(f"{path} is not what `import` writes: {error}; import the pack again") from error
    if found.schema > SCHEMA:
        raise UsageError(f"{path}: a newer version of Assay wrote it")
    return found
