"""Finding problem files and reading what they declare, without running them."""

from __future__ import annotations

import ast
import fnmatch
import glob
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.catalog import modules
from harness.errors import UsageError, nearest

PRECISIONS = ("float16", "bfloat16", "float32", "float64")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem file. `fault` says why it cannot be used, where it cannot; `precision` is its PRECISION."""

    id: str
    path: Path
    source: bytes
    precision: str = "float32"
    variants: dict[str, dict[str, Any]] = {}
    constants: frozenset[str] = frozenset()
    fault: str = ""


def discover(patterns: Iterable[str]) -> list[Problem]:
    """Problems under the given files, folders and globs, by id (the last two path parts, without `.py`).

    In a folder, files that define neither `Model` nor `get_inputs` are helpers and are passed over; a file named
    outright is taken at its word. Raises UsageError where a pattern matches nothing or two files have one id.
    """
    found: dict[str, Problem] = {}
    for pattern in patterns:
        named, files = python_files(pattern)
        for path in files:
            if not named and not _looks_like_a_problem(path):
                continue
            problem = read(path)
            known = found.get(problem.id)
            if known and known.path.resolve() != path.resolve():
                raise UsageError(f"two problems are called {problem.id}: {known.path} and {path}; name one of them")
            found[problem.id] = problem
    if not found:
        raise UsageError(f"no problem found in {', '.join(patterns)}")
    return [found[key] for key in sorted(found)]


def read(path: Path) -> Problem:
    """The problem as its file declares it."""
    identity = f"{path.resolve().parent.name}/{path.stem}"
    source = path.read_bytes()
    try:
        tree = modules.parse(path)
        precision = modules.literal(tree, "PRECISION", "float32")
        variants = modules.literal(tree, "VARIANTS", {})
    except (modules.LoadFault, ValueError) as error:
        return Problem(id=identity, path=path, source=source, fault=str(error))
    return Problem(
        id=identity,
        path=path,
        source=source,
        precision=precision,
        variants=variants,
        constants=frozenset(modules.assigned_names(tree)),
        fault=_fault(path, tree, precision, variants),
    )


def with_variants(problem: Problem, defined: dict[str, dict[str, dict[str, Any]]]) -> Problem:
    """The problem with the variants that a config defines for it added; the config's win over the file's."""
    variants = dict(problem.variants)
    for pattern, more in defined.items():
        if fnmatch.fnmatchcase(problem.id, pattern):
            variants |= more
    return msgspec.structs.replace(problem, variants=variants)


def overrides(problem: Problem, variant: str) -> dict[str, Any] | None:
    """The constants that `variant` replaces, or None where the problem has no such variant.

    Raises UsageError for a constant that the module does not assign.
    """
    if variant == "default" and "default" not in problem.variants:
        return {}
    if variant not in problem.variants:
        return None
    constants = problem.variants[variant]
    for name in constants:
        if name not in problem.constants:
            raise UsageError(
                f"{problem.path}: variant '{variant}' sets '{name}', which the module does not assign; "
                f"{nearest(name, problem.constants - {'VARIANTS', 'PRECISION'})}"
            )
    return constants


def python_files(pattern: str) -> tuple[bool, list[Path]]:
    """Whether `pattern` names files outright (no folder), and the files; raises UsageError where there is none."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*.py")) if not _hidden(file.relative_to(path))]
        return False, files
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    files = [match for match in matches if match.is_file() and match.suffix == ".py"]
    for folder in (match for match in matches if match.is_dir()):
        files += python_files(str(folder))[1]
    if not files:
        raise UsageError(f"'{pattern}' matches no Python file or folder")
    return path.is_file(), files


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _looks_like_a_problem(path: Path) -> bool:
    """Whether a file found in a folder is meant as one; one that cannot be parsed may be."""
    try:
        return bool({"Model", "get_inputs"} & _definitions(modules.parse(path)))
    except modules.LoadFault:
        return True


def _definitions(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def _fault(path: Path, tree: ast.Module, precision: Any, variants: Any) -> str:
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in _definitions(tree)]
    if missing:
        return f"{path.name} defines no {' and no '.join(missing)}"
    if precision not in PRECISIONS:
        return f"{path.name}: PRECISION is {precision!r}; {nearest(str(precision), PRECISIONS)}"
    if not isinstance(variants, dict) or not all(isinstance(value, dict) for value in variants.values()):
        return f"{path.name}: VARIANTS must map a variant's name to a mapping of constants"
    return ""
