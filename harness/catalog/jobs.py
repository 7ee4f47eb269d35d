"""The matrix: problems x variants x precisions x candidates, minus excluded jobs, each job with its resume key."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.catalog import baselines, solutions
from harness.catalog import problems as catalog
from harness.catalog import sources as files
from harness.catalog.facts import Reads
from harness.catalog.problems import PRECISIONS, Problem
from harness.catalog.solutions import Candidate, Place
from harness.config import Config, Pattern
from harness.errors import UsageError, nearest
from harness.records import PROTOCOL_VERSION

# In `surroundings`: what decides about builds; part of the keys of candidates that need one.
BUILDS = "digest of compilers and their variables"

MOST_REMARKS = 20
# Of problems that lack something.
MOST_NAMED = 3


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation to carry out. Jobs with equal `group` share a judge, its reference and its baseline."""

    problem: Problem
    variant: str
    overrides: dict[str, Any]
    precision: str
    candidate: Candidate
    key: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.problem.id, self.variant, self.precision, self.problem.digest)

    @property
    def title(self) -> str:
        return f"{self.problem.id} {self.variant} {self.precision} {self.candidate.name}"


class Cell(NamedTuple):
    """A cell of the matrix, before its candidate is read. `key` is that of its job, and `content` the digest of its
    candidate, by the files as they are now."""

    problem: Problem
    variant: str
    precision: str
    candidate: Place | Candidate
    key: str = ""
    content: str = ""


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The matrix of a run, and notes about it; `left_out` are those about what was asked for but is not in it.
    `problems` are the ids of all that are selected."""

    cells: list[Cell]
    notes: list[str]
    left_out: list[str]
    problems: frozenset[str]


class JobMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a run, and notes as in its outline."""

    jobs: list[Job]
    notes: list[str]


def plan(config: Config, surroundings: dict[str, str], reader: Reads) -> JobMatrix:
    """Find all files and read those that are selected, as `outline` and `read`."""
    found = _matrix(config, reader)
    return JobMatrix(jobs=read(found.cells, config, surroundings, reader), notes=found.notes)


def outline(config: Config, surroundings: dict[str, str], reader: Reads) -> Outline:
    """Find all files and build the matrix. `surroundings` (device, torch, ...) are part of the keys: records made in
    others are not resumed. `reader` reads problems only. Raises UsageError if a part of the matrix is empty or a name
    is wrong."""
    found = _matrix(config, reader)
    keys = _Keys(config, surroundings)
    known: dict[Path, Candidate] = {}
    folders: files.Folders = {}
    cells = []
    for cell in found.cells:
        candidate = cell.candidate
        if isinstance(candidate, Place):
            if candidate.path not in known:
                known[candidate.path] = solutions.glimpse(candidate, folders)
            candidate = known[candidate.path]
        cells.append(cell._replace(key=keys.of(cell, candidate), content=candidate.digest))
    return msgspec.structs.replace(found, cells=cells)


def read(cells: Iterable[Cell], config: Config, surroundings: dict[str, str], reader: Reads) -> list[Job]:
    """The jobs of these cells, by their files as they are now: one that was changed since has another key."""
    keys = _Keys(config, surroundings)
    known: dict[Path, Candidate] = {}
    folders: files.Folders = {}
    jobs = []
    for cell in cells:
        candidate = cell.candidate
        if isinstance(candidate, Place):
            if candidate.path not in known:
                known[candidate.path] = solutions.read(candidate, reader, folders)
            candidate = known[candidate.path]
        jobs.append(
            Job(
                problem=cell.problem,
                variant=cell.variant,
                overrides=catalog.overrides(cell.problem, cell.variant) or {},
                precision=cell.precision,
                candidate=candidate,
                key=keys.of(cell, candidate),
            )
        )
    return jobs


def _matrix(config: Config, reader: Reads) -> Outline:
    """The selected cells, without keys."""
    for name in (config.baseline, *config.baselines):
        if name not in baselines.CAPTIONS:
            raise UsageError(f"unknown baseline '{name}'; {nearest(name, baselines.CAPTIONS)}")
    remarks: list[str] = []
    found = catalog.discover(config.problems, reader, remarks.append)
    problems = [catalog.with_variants(problem, config.define_variants) for problem in found]
    candidates = solutions.discover(config.solutions, remarks.append)
    known = {problem.id for problem in problems}
    if config.solves and config.solves not in known:
        raise UsageError(f"solves: no selected problem is called '{config.solves}'; {nearest(config.solves, known)}")
    if config.solves:
        candidates = [msgspec.structs.replace(candidate, problem=config.solves) for candidate in candidates]
    strangers = [candidate for candidate in candidates if candidate.problem not in known]
    notes = remarks[:MOST_REMARKS]
    if len(remarks) > MOST_REMARKS:
        notes.append(f"{catalog.SKIPPED} {len(remarks) - MOST_REMARKS} more that are not files")
    if strangers:
        owners = sorted({candidate.problem for candidate in strangers})
        if len(strangers) == len(candidates):
            raise UsageError(f"no candidate solves a selected problem; candidates are for {', '.join(owners)}")
        whose = f"of problems that are not selected: {_some(owners)}"
        notes.append(f"{catalog.SKIPPED} {len(strangers)} candidates {whose}")
    owned: dict[str, list[Place]] = {}
    for one in candidates:
        owned.setdefault(one.problem, []).append(one)
    cells: list[Cell] = []
    without: dict[str, list[str]] = {}
    for problem in problems:
        own: list[Place | Candidate] = [*owned.get(problem.id, [])]
        if not own and _is_included(problem, config):
            without.setdefault("candidate", []).append(problem.id)
        own += [baselines.as_candidate(problem, name) for name in config.baselines]
        for variant in dict.fromkeys(config.variants if own else []):
            if not catalog.has_variant(problem, variant):
                without.setdefault(f"variant '{variant}'", []).append(problem.id)
                continue
            for precision in _precisions(config, problem):
                cells += [Cell(problem, variant, precision, one) for one in own]
    lacking = [_lacking(what, ids) for what, ids in without.items()]
    left_out = [*(note for note in notes if note.startswith(catalog.SKIPPED)), *lacking]
    if not cells:
        names = {name for problem in problems for name in problem.variants} | {"default"}
        wrong = next((variant for variant in config.variants if variant not in names), "")
        raise UsageError(
            f"no problem has the variant '{wrong}'; {nearest(wrong, names)}" if wrong else "there is no job to do"
        )
    chosen = [cell for cell in cells if _selected(cell, config)]
    if not chosen:
        raise UsageError(f"include and exclude leave none of the {len(cells)} jobs")
    return Outline(cells=chosen, notes=[*notes, *lacking], left_out=left_out, problems=frozenset(known))


def sources(todo: Iterable[Job]) -> set[Path]:
    """The files of these jobs' problems and candidates, without jobs whose files are already known to be faulty."""
    opened = [job for job in todo if not job.problem.fault and not job.candidate.fault]
    return {path for job in opened for path in (job.problem.path, job.candidate.path)}


def _precisions(config: Config, problem: Problem) -> list[str]:
    chosen = dict.fromkeys(problem.precision if name == "default" else name for name in config.precisions)
    for name in chosen:
        if name not in PRECISIONS and not problem.fault:
            raise UsageError(f"unknown precision '{name}'; {nearest(name, (*PRECISIONS, 'default'))}")
    return list(chosen)


def _lacking(what: str, ids: list[str]) -> str:
    if len(ids) == 1:
        return f"{ids[0]} has no {what}"
    return f"{len(ids)} problems have no {what}: {_some(ids)}"


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return f"{', '.join(ids[:MOST_NAMED])}{more}"


class _Keys:
    """The resume keys of a run's jobs."""

    def __init__(self, config: Config, surroundings: dict[str, str]) -> None:
        self._conditions = {
            "protocol": PROTOCOL_VERSION,
            "baseline": config.baseline,
            "timing": config.timing,
            "check": config.check,
            "provenance": config.provenance,
            "allow": config.allow,
            "seed": config.seed,
            "surroundings": {name: value for name, value in surroundings.items() if name != BUILDS},
        }
        self._builds = surroundings.get(BUILDS, "")
        # By problem, variant and precision, which many candidates share.
        self._digests: dict[tuple[str, str, str], bytes] = {}

    def of(self, cell: Cell, candidate: Candidate) -> str:
        """The key of a cell with this candidate."""
        place = (cell.problem.id, cell.variant, cell.precision)
        if place not in self._digests:
            own = {"overrides": catalog.overrides(cell.problem, cell.variant) or {}, "precision": cell.precision}
            conditions = msgspec.json.encode(self._conditions | own, order="deterministic")
            self._digests[place] = hashlib.sha256(conditions).digest()
        identity = f"{cell.problem.id}\0{cell.variant}\0{cell.candidate.name}".encode()
        digest = hashlib.sha256()
        digest.update(hashlib.sha256(identity).digest())
        digest.update(bytes.fromhex(cell.problem.digest) + bytes.fromhex(candidate.digest))
        digest.update(self._digests[place])
        if candidate.facts.needs_build:
            digest.update(self._builds.encode())
        return digest.hexdigest()[:32]


def _is_included(problem: Problem, config: Config) -> bool:
    return not config.include or any(fnmatch.fnmatchcase(problem.id, one.problem) for one in config.include)


def is_asked_for(job: Sequence[str], outline: Outline, config: Config) -> bool:
    """Whether a call asks for such a problem, variant, precision and candidate: if it has no such job, that is gone."""
    problem, variant, precision, called = job[:4]
    within = variant in config.variants and not {precision, "default"}.isdisjoint(config.precisions)
    return problem in outline.problems and within and _is_selected(config, problem, variant, precision, called)


def _selected(cell: Cell, config: Config) -> bool:
    called = cell.candidate.called if isinstance(cell.candidate, Place) else cell.candidate.name
    return _is_selected(config, cell.problem.id, cell.variant, cell.precision, called)


def _is_selected(config: Config, problem: str, variant: str, precision: str, called: str) -> bool:
    def matches(pattern: Pattern) -> bool:
        return (
            fnmatch.fnmatchcase(problem, pattern.problem)
            and fnmatch.fnmatchcase(variant, pattern.variant)
            and fnmatch.fnmatchcase(precision, pattern.precision)
            and fnmatch.fnmatchcase(called, pattern.candidate)
        )

    included = not config.include or any(matches(pattern) for pattern in config.include)
    return included and not any(matches(pattern) for pattern in config.exclude)
