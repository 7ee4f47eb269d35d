"""Finds candidate files and the problem that each solves, without running or parsing them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from harness import wording
from harness.catalog import sources
from harness.catalog.facts import CandidateFacts, Reads
from harness.catalog.problems import python_files
from harness.errors import UsageError
from harness.records import Outcome, Status


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate's path, and its name and problem, which follow from the path. The file has not been read."""

    problem: str
    name: str
    path: Path


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of one candidate file. Its text is not here: the session must not parse it.

    `digest` is the SHA-256 of its bytes and of the data beside it; `fault` says why it cannot be evaluated, if reading
    shows that. `baseline` names PyTorch's own way of running the reference; empty for a real candidate.
    """

    problem: str
    name: str
    path: Path
    digest: str
    caption: str = ""
    facts: CandidateFacts = CandidateFacts()
    fault: Outcome | None = None
    baseline: str = ""


def discover(patterns: Iterable[str], note: Callable[[str], None] = lambda text: None) -> list[Place]:
    """Candidates under the given files, folders and globs: `.../<set>/<name>/<candidate>.py`.

    `note` is called for what has a candidate's name but is not a file. Raises UsageError if a pattern matches nothing
    or two files have one name for one problem.
    """
    found: dict[tuple[str, str], Place] = {}
    for pattern in patterns:
        for path in python_files(pattern, note)[1]:
            # A link solves the problem of the folder that contains the link.
            folder = path.parent.resolve()
            problem = f"{wording.name(folder.parent.name)}/{wording.name(folder.name)}"
            place = Place(problem=problem, name=wording.name(path.stem), path=path)
            key = (place.problem, place.name)
            if key in found and found[key].path.resolve() != path.resolve():
                what = f"two candidates are called {'/'.join(key)}: {found[key].path} and {path}"
                raise UsageError(f"{what}; rename one, or select only one of them")
            found[key] = place
    return [found[key] for key in sorted(found)]


def read(place: Place, reader: Reads) -> Candidate:
    """The candidate at this place; if it cannot be read, `fault` says why."""
    known = Candidate(problem=place.problem, name=place.name, path=place.path, digest="")
    try:
        data = sources.load(place.path)
    except sources.LoadFault as fault:
        # The content is not known, so the digest is that of the reason: a new verdict needs another file.
        digest = hashlib.sha256(fault.reason.encode()).hexdigest()
        message = wording.plain(f"{place.path.name}: {fault}", 500)
        outcome = Outcome(status=Status.LOAD_ERROR, reason=fault.reason, message=message)
        return msgspec.structs.replace(known, digest=digest, fault=outcome)
    known = msgspec.structs.replace(known, digest=sources.digest(place.path, data))
    answer = reader.candidate(data, place.path.name)
    if isinstance(answer, Outcome):
        return msgspec.structs.replace(known, fault=answer)
    return msgspec.structs.replace(known, facts=answer, caption=answer.caption)
