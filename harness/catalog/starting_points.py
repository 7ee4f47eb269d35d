"""Files to begin with: a problem of one's own, or a candidate that is right and as fast as PyTorch. Nothing is run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from harness.catalog import modules, problems
from harness.drafts import draft
from harness.errors import UsageError

PROBLEM = '''\
"""{name}: say here what is computed; this is the problem's caption."""

import torch
from torch import nn

# Sizes by name, for `--variant small`: each replaces the constants below.
VARIANTS = {{"small": {{"rows": 64, "columns": 256}}}}
# What is computed in, if not float32: float16, bfloat16 or float64.
PRECISION = "float32"

rows = 4096
columns = 4096


class Model(nn.Module):
    """The reference: candidates must give the same numbers, up to rounding."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * self.scale


def get_inputs() -> list[torch.Tensor]:
    """The arguments of one call of `forward`, drawn anew each time."""
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """The arguments of `Model` and `ModelNew`."""
    return [columns]
'''
CAPTION = '"""{name}: say here what is done otherwise; this is the candidate\'s caption."""'
# Of a problem's file, what is no part of a candidate.
NOT_A_CANDIDATES = {"get_inputs", "get_init_inputs", "VARIANTS", "PRECISION"}


def problem(name: str, root: Path) -> Path:
    """Write problems/<set>/<name>.py below `root`. Raises UsageError for a name of another form or in use."""
    folder, own = _parts(name, 2, "SET/NAME, as attention/sdpa")
    return _write(root / "problems" / folder / f"{own}.py", PROBLEM.format(name=own))


def solution(name: str, root: Path) -> Path:
    """Write solutions/<set>/<problem>/<name>.py below `root`: the problem's own code as `ModelNew`.

    Raises UsageError where there is one, or no such problem.
    """
    folder, solved, own = _parts(name, 3, "SET/PROBLEM/NAME, as attention/sdpa/mine")
    found = problems.by_name(f"{folder}/{solved}", root)
    return _write(root / "solutions" / folder / solved / f"{own}.py", _as_candidate(found, own))


def variants(name: str, root: Path) -> set[str]:
    """The sizes beside those as written that the problem of a candidate SET/PROBLEM/NAME has."""
    found = problems.by_name(name.rpartition("/")[0], root)
    try:
        declared = modules.literal(modules.parse(found), "VARIANTS", {})
    except ValueError:
        # No run can use it, and says so.
        return set()
    return set(declared) if isinstance(declared, dict) else set()


def _parts(name: str, count: int, form: str) -> list[str]:
    parts = name.removesuffix(".py").split("/")
    # Names may begin with a digit, as KernelBench's do.
    if len(parts) != count or not all(re.fullmatch(r"\w[\w-]{,99}", part) for part in parts):
        raise UsageError(f"'{name}' is no name of the form {form}")
    return parts


def _write(path: Path, text: str) -> Path:
    if path.exists():
        raise UsageError(f"{path} is there already; choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"cannot write {path}: a file has the name of its folder") from error
    with draft(path) as place:
        place.write_text(text)
    return path


def _as_candidate(found: Path, name: str) -> str:
    """The file of a problem with `Model` as `ModelNew`, without what only problems have."""
    source = found.read_text()
    body = [
        statement
        for statement in modules.parsed(source.encode(), found.name).body
        if getattr(statement, "name", "") not in NOT_A_CANDIDATES and not _is_text(statement)
    ]
    constants = {id(one): modules.assigned_names([one]) for one in body}
    used = {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    kept = [one for one in body if not constants[id(one)] or constants[id(one)] & used - NOT_A_CANDIDATES]
    parts = [CAPTION.format(name=name), "\n"]
    for before, statement in zip([None, *kept], kept, strict=False):
        alone = isinstance(statement, ast.ClassDef | ast.FunctionDef) or not isinstance(before, type(statement))
        parts.append("\n" * 2 if alone and before is not None else "")
        parts.append(f"{_text(source, statement)}\n")
    return _renamed("".join(parts).replace('"""\n', '"""\n\n', 1))


def _text(source: str, statement: ast.stmt) -> str:
    first = min([statement.lineno, *(line.lineno for line in getattr(statement, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : statement.end_lineno])


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or another text that stands by itself."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _renamed(source: str) -> str:
    """`Model` as `ModelNew`, wherever it is the class or the function."""
    lines = source.splitlines()
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "Model":
            found.append((node.lineno - 1, node.col_offset))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == "Model":
            keyword = "class " if isinstance(node, ast.ClassDef) else "def "
            found.append((node.lineno - 1, node.col_offset + len(keyword)))
    for line, column in sorted(found, reverse=True):
        before = lines[line].encode()[:column].decode()
        lines[line] = f"{before}ModelNew{lines[line][len(before) + len('Model') :]}"
    return "\n".join(lines) + "\n"
