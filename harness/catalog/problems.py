"""Finds problem files and what they declare, without running or parsing them here."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness import places, wording
from harness.catalog import search, sources
from harness.catalog.facts import ProblemFacts, Reads, Signature
from harness.errors import UsageError, nearest

# How a note about a file that is passed over begins.
SKIPPED = "skipped"
PRECISIONS = ("float16", "bfloat16", "float32", "float64")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem file. `fault` says why it cannot be used, if so; `precision` is its PRECISION.

    `digest` is the SHA-256 of its bytes and of the data beside it, `methods` has the signatures of Model's methods, as
    far as reading shows them.
    """

    id: str
    path: Path
    digest: str
    precision: str = "float32"
    variants: dict[str, dict[str, Any]] = {}
    constants: frozenset[str] = frozenset()
    methods: dict[str, Signature] = {}
    fault: str = ""


def discover(patterns: Iterable[str], reader: Reads, note: Callable[[str], None] = lambda text: None) -> list[Problem]:
    """Problems under the given files, folders and globs, by id (the last two path parts, without `.py`).

    In a folder, files that define neither `Model` nor `get_inputs` are helpers and are skipped; a file that a pattern
    names itself is always a problem. `note` is called for what has a problem's name but is not a file. Raises
    UsageError if a pattern matches nothing or two files have one id.
    """
    found: dict[str, Problem] = {}
    folders: sources.Folders = {}
    for pattern in patterns:
        named, files = python_files(pattern, note)
        for path in files:
            problem, meant_as_one = _read(path, reader, folders)
            if not named and not meant_as_one:
                continue
            known = found.get(problem.id)
            if known and known.path.resolve() != path.resolve():
                raise UsageError(
                    f"two problems are called {problem.id}: {known.path} and {path}; select only one of them"
                )
            found[problem.id] = problem
    if not found:
        raise UsageError(f"no problem found in {', '.join(patterns)}")
    return [found[key] for key in sorted(found)]


def read(path: Path, reader: Reads) -> Problem:
    """The problem as its file declares it."""
    return _read(path, reader)[0]


def _read(path: Path, reader: Reads, folders: sources.Folders | None = None) -> tuple[Problem, bool]:
    """The problem, and whether its file is meant as one; a file that cannot be read counts as one. `folders` has what
    was read of folders for other files."""
    folder = wording.name(path.parent.resolve().name)
    problem = Problem(id=f"{folder}/{wording.name(path.stem)}", path=path, digest="")
    try:
        data, digest = sources.digested(path, folders)
    except sources.LoadFault as fault:
        digest = hashlib.sha256(fault.reason.encode()).hexdigest()
        text = wording.plain(f"{path.name}: {fault}", 500)
        return msgspec.structs.replace(problem, digest=digest, fault=text), True
    problem = msgspec.structs.replace(problem, digest=digest)
    facts = reader.problem(data, path.name)
    if not isinstance(facts, ProblemFacts):
        return msgspec.structs.replace(problem, fault=facts.message), True
    declared = msgspec.structs.replace(
        problem,
        precision=facts.precision,
        variants=facts.variants,
        constants=facts.constants,
        methods=facts.methods,
        fault=facts.fault,
    )
    return declared, facts.meant_as_one


def above(path: Path, problem: str) -> Path | None:
    """problems/<set>/<name>.py of the nearest folder above `path` that has it; None where none has."""
    beside = (folder / "problems" / f"{problem}.py" for folder in places.real(path).parents)
    return next((place for place in beside if os.path.isfile(place)), None)


def by_name(name: str, root: Path = Path()) -> Path:
    """The file of a problem: a path, or a name like attention/sdpa below problems/, of `root` or of the library.

    Raises UsageError with the nearest name there is.
    """
    for place in (root / name, root / "problems" / f"{name}.py", places.LIBRARY / "problems" / f"{name}.py"):
        if place.suffix == ".py" and os.path.isfile(place):
            return place
    raise UsageError(f"there is no problem '{wording.plain(name, 200)}'; {nearest(name, names(root))}")


def names(root: Path = Path()) -> set[str]:
    """The names of all problems below problems/, of `root` and of the library."""
    return {
        f"{path.parent.name}/{path.stem}"
        for folder in (root, places.LIBRARY)
        for path in search.matches(Path(glob.escape(str(folder))) / "problems/*/[!_]*.py")
    }


def among(patterns: Iterable[str]) -> dict[str, Path]:
    """The Python files that patterns match, by their names as problems. Raises UsageError if one matches nothing."""
    files = [path for pattern in patterns for path in python_files(pattern, lambda text: None)[1]]
    return {f"{places.real(path).parent.name}/{path.stem}": path for path in files}


def with_variants(problem: Problem, defined: dict[str, dict[str, dict[str, Any]]]) -> Problem:
    """The problem with the variants that a config adds to it; the config's replace the file's."""
    variants = dict(problem.variants)
    for pattern, more in defined.items():
        if fnmatch.fnmatchcase(problem.id, pattern):
            variants |= more
    return msgspec.structs.replace(problem, variants=variants)


def variant_names(problem: Problem) -> set[str]:
    """The names of the sizes that the problem, or a config, defines; `default` are those as written."""
    return {"default", *problem.variants}


def has_variant(problem: Problem, variant: str) -> bool:
    """Whether a problem has such sizes."""
    return variant in variant_names(problem)


def overrides(problem: Problem, variant: str) -> dict[str, Any] | None:
    """The constants that `variant` replaces, or None if the problem has no such variant.

    Raises UsageError for a constant that the module does not assign.
    """
    if not has_variant(problem, variant):
        return None
    constants = problem.variants.get(variant, {})
    for name in constants:
        if name not in problem.constants:
            raise UsageError(
                f"{problem.path}: variant '{variant}' sets '{name}', which the module does not assign; "
                f"{nearest(name, problem.constants - {'VARIANTS', 'PRECISION'})}"
            )
    return constants


def python_files(pattern: str, note: Callable[[str], None]) -> tuple[bool, list[Path]]:
    """Whether `pattern` names files itself (not a folder), and the files; raises UsageError if there is none.

    `note` is called for what is named like one but is a folder, a pipe, a device or a link that leads nowhere.
    """
    try:
        named = Path(pattern or "\0").expanduser()
    except RuntimeError as error:
        raise UsageError(f"'{pattern}': this machine has no user of that name") from error
    if (path := places.found(named)) != named:
        note(f"{pattern} is not in this folder; using {path}")
    # Not Path's: that raises for a name that is too long for the system, and behind a folder that is closed.
    if os.path.isdir(path):
        return False, _files(_named_python([path]), note)
    found = [path] if os.path.lexists(path) else search.matches(path)
    files = _files([match for match in found if match.suffix == ".py" and not os.path.isdir(match)], note)
    files += _files(_named_python(match for match in found if os.path.isdir(match)), note)
    if not files:
        raise UsageError(f"'{wording.plain(pattern, 200)}' matches no Python file or folder")
    return os.path.isfile(path), files


def _named_python(folders: Iterable[Path]) -> list[Path]:
    """Everything named `*.py` below `folders`, at any depth, that is not hidden (`.x`, `_x`)."""
    listings = search.folders(map(str, folders), (".", "_"))
    found = (entry.path for _, entries in listings for entry in entries if entry.name.endswith(".py"))
    # In the order of paths, which take longer to compare.
    return [Path(place) for place in sorted(found, key=lambda place: place.split(os.sep))]


def _files(found: Iterable[Path], note: Callable[[str], None]) -> list[Path]:
    kept = []
    for path in found:
        if what := sources.obstacle(path):
            note(f"{SKIPPED} {path}: {what}")
        else:
            kept.append(path)
    return kept
