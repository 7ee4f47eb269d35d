"""Finding candidate files and telling which problem each solves, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.catalog import modules
from harness.catalog.problems import python_files
from harness.errors import UsageError


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate file; `caption` is the first line of its docstring.

    `baseline` names the way of PyTorch's own that a reference is run in; empty for a candidate proper.
    """

    problem: str
    name: str
    path: Path
    source: bytes
    caption: str = ""
    baseline: str = ""


def discover(patterns: Iterable[str]) -> list[Candidate]:
    """Candidates under the given files, folders and globs: `.../<set>/<name>/<candidate>.py`.

    Raises UsageError where a pattern matches nothing or two files claim one name for one problem.
    """
    found: dict[tuple[str, str], Candidate] = {}
    for pattern in patterns:
        for path in python_files(pattern)[1]:
            candidate = read(path)
            key = (candidate.problem, candidate.name)
            if key in found and found[key].path.resolve() != path.resolve():
                raise UsageError(f"two candidates are called {'/'.join(key)}: {found[key].path} and {path}")
            found[key] = candidate
    return [found[key] for key in sorted(found)]


def read(path: Path) -> Candidate:
    """The candidate as its path and docstring tell; a file that does not parse is one too, and fails later."""
    folder = path.resolve().parent
    try:
        docstring = ast.get_docstring(modules.parse(path)) or ""
    except modules.LoadFault:
        docstring = ""
    return Candidate(
        problem=f"{folder.parent.name}/{folder.name}",
        name=path.stem,
        path=path,
        source=path.read_bytes(),
        caption=docstring.partition("\n")[0].strip(),
    )
