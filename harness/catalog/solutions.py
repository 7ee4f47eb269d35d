"""Finds candidate files and the problem that each solves, without running or parsing them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from harness import wording
from harness.catalog import sources
from harness.catalog.facts import CandidateFacts, Reads, mentions_compiler
from harness.catalog.problems import python_files
from harness.records import Outcome, Status


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate's path, and its name and problem, which follow from the path. The file has not been read.

    `others` are paths of candidates that the path would give the same name, `called`; `name` is then told apart by the
    path's digest.
    """

    problem: str
    name: str
    called: str
    path: Path
    others: tuple[Path, ...] = ()


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

    `note` is called for what has a candidate's name but is not a file. Raises UsageError if a pattern matches nothing.
    """
    found: dict[tuple[str, str], dict[str, Path]] = {}
    folders: dict[str, tuple[Path, str]] = {}
    for pattern in patterns:
        for path in python_files(pattern, note)[1]:
            # A link solves the problem of the folder that contains the link.
            named = os.path.dirname(path)
            if named not in folders:
                real = path.parent.resolve()
                folders[named] = real, f"{wording.name(real.parent.name)}/{wording.name(real.name)}"
            folder, problem = folders[named]
            place = os.path.realpath(path) if os.path.islink(path) else os.path.join(folder, path.name)
            found.setdefault((problem, wording.name(path.stem)), {})[place] = path
    return [place for key in sorted(found) for place in _places(*key, found[key])]


def _places(problem: str, name: str, found: dict[str, Path]) -> list[Place]:
    """The candidates of one name for one problem, by where they really are and as they were found."""
    if len(found) == 1:
        return [Place(problem=problem, name=name, called=name, path=path) for path in found.values()]
    return [
        Place(
            problem=problem,
            name=wording.told_apart(name, real),
            called=name,
            path=found[real],
            others=tuple(found[other] for other in sorted(found) if other != real),
        )
        for real in sorted(found)
    ]


def read(place: Place, reader: Reads, folders: sources.Folders | None = None) -> Candidate:
    """The candidate at this place; if it cannot be read, `fault` says why. `folders` as for `glimpse`."""
    known, data = _loaded(place, folders)
    if known.fault:
        return known
    answer = reader.candidate(data, place.path.name)
    if isinstance(answer, Outcome):
        return msgspec.structs.replace(known, fault=answer)
    return msgspec.structs.replace(known, facts=answer, caption=answer.caption)


def glimpse(place: Place, known: sources.Folders) -> Candidate:
    """What `read` would give, as far as a job's key needs it: without having the file parsed, which takes longer than
    all else.

    `known` is filled and used by calls for one moment's digests.
    """
    return _loaded(place, known)[0]


def _loaded(place: Place, folders: sources.Folders | None = None) -> tuple[Candidate, bytes]:
    """The candidate without what a parser finds, and its text, which is empty where it cannot be read."""
    known = Candidate(problem=place.problem, name=place.name, path=place.path, digest="")
    if place.others:
        called, others = f"{place.problem}/{place.called}", " and ".join(map(str, place.others))
        return _unread(known, "doubled_name", f"{place.path} is called {called}, as is {others}; rename one"), b""
    try:
        data, content = sources.digested(place.path, folders)
    except sources.LoadFault as fault:
        return _unread(known, fault.reason, f"{place.path.name}: {fault}"), b""
    facts = CandidateFacts(needs_build=mentions_compiler(data))
    return msgspec.structs.replace(known, digest=content, facts=facts), data


def _unread(known: Candidate, reason: str, why: str) -> Candidate:
    # The content is not known, so the digest is that of the reason: a new verdict needs another file.
    digest = hashlib.sha256(reason.encode()).hexdigest()
    outcome = Outcome(status=Status.LOAD_ERROR, reason=reason, message=wording.plain(why, 500))
    return msgspec.structs.replace(known, digest=digest, fault=outcome)
