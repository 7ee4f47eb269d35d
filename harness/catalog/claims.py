"""`import.json`: where each file of an imported pack came from, and what its source claims about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec

from harness import wording
from harness.catalog import sources
from harness.catalog.solutions import Candidate
from harness.errors import UsageError

MANIFEST = "import.json"
SCHEMA = 1
MOST_BYTES = 1 << 28

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

    def alone(self) -> list[Left]:
        """What was left, without blocks of a text of which another block was taken."""
        taken = {(one.origin.file, one.origin.row) for one in self.candidates}
        return [one for one in self.left if not (one.origin.block and (one.origin.file, one.origin.row) in taken)]


def read(path: Path) -> Manifest:
    """The manifest at `path`. Raises UsageError if it cannot be read."""
    try:
        found = msgspec.json.decode(sources.regular(path, MOST_BYTES), type=Manifest)
    except (sources.LoadFault, OSError, msgspec.MsgspecError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else wording.plain(str(error), 200)
        raise UsageError(f"{path} is not what `import` writes: {why}; import the pack again") from error
    if found.schema > SCHEMA:
        raise UsageError(f"{path}: a newer version of Assay wrote it")
    return found


class Claims:
    """What sources claim about candidates, from the import.json of the folders that these are in."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[str, Imported]] = {}
        self.notes: list[str] = []

    def about(self, candidate: Candidate) -> Claim:
        """An empty claim if its file is not as it was imported, or not imported at all."""
        path = candidate.path.absolute()
        # DIR/solutions/SET/NAME/CANDIDATE.py
        folder = path.parents[min(3, len(path.parents) - 1)]
        known = self._known[folder] if folder in self._known else self._read(folder)
        found = known.get(str(path.relative_to(folder)))
        return found.claim if found and found.sha256 == candidate.digest and not candidate.baseline else Claim()

    def _read(self, folder: Path) -> dict[str, Imported]:
        """A file of this name may be another program's; a run does not depend on it."""
        self._known[folder] = {}
        if os.path.lexists(folder / MANIFEST):
            try:
                self._known[folder] = {one.file: one for one in read(folder / MANIFEST).candidates}
            except UsageError as error:
                self.notes.append(f"no claims: {error}")
        return self._known[folder]
