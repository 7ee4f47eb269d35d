"""Problem and solution files as Python modules: parsed and executed in other processes, never in the session."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.catalog import effort
from harness.catalog.sources import LoadFault as LoadFault
from harness.errors import door

# Of the names of modules that are made here.
PREFIX = "assay_"
_serial = itertools.count()
FENCE = re.compile(rb"^```", re.MULTILINE)


def parse(path: Path) -> ast.Module:
    """Raises LoadFault (`syntax_error`, `unreadable`, `nested_too_deeply`, `source_too_large`) with the line."""
    try:
        return parsed(path.read_bytes(), path.name, str(path))
    except OSError as error:
        raise LoadFault("unreadable", f"{path.name}: {error}") from error


def parsed(source: bytes, file: str, shown_as: str = "") -> ast.Module:
    """The syntax tree of the source of `file`. Raises LoadFault like `parse`."""
    effort.check(source, file)
    try:
        tree = ast.parse(source, filename=shown_as or file)
        # The parser lets some mistakes through, as a `return` outside of any function.
        compile(tree, shown_as or file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 0
        fenced = " (there are Markdown fences in it: give the code alone)" if FENCE.search(source) else ""
        raise LoadFault("syntax_error", f"{file}:{line}: {error.msg}{fenced}", line) from error
    except ValueError as error:
        raise LoadFault("unreadable", f"{file}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise LoadFault("nested_too_deeply", f"{file}: too deeply nested, or too large, for Python's parser") from error
    return tree


def assigned_names(statements: list[ast.stmt]) -> set[str]:
    """Names that these statements of a module assign."""
    return {name for statement in statements for name in _targets(statement)}


def literal(tree: ast.Module, name: str, default: Any = None) -> Any:
    """The literal value of a module-level constant; raises ValueError if it is computed."""
    value = default
    for statement in tree.body:
        if name in _targets(statement):
            try:
                value = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
            except (ValueError, AttributeError) as error:
                raise ValueError(f"{name} must be a literal") from error
    return value


@door
def execute(path: Path, overrides: dict[str, Any] | None = None) -> ModuleType:
    """Run the file as a module of its own, with module-level constants replaced by `overrides` as it runs.

    Constants are replaced right after each statement that assigns them, so that values computed from them later change,
    too. Raises LoadFault for a file that cannot be parsed, and whatever the file itself raises.
    """
    # As of a program that is started without arguments: files ask for theirs as they are imported.
    sys.argv = [str(path)]
    name = f"{PREFIX}{_identifier(path.stem)}_{next(_serial)}"
    if not overrides:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise LoadFault("unreadable", f"{path.name} is not a Python file")
        parse(path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    tree = parse(path)
    tree.body = [piece for statement in tree.body for piece in (statement, *_replacements(statement, overrides))]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    linecache.checkcache(str(path))
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def forget() -> None:
    """Drop all modules that `execute` has made."""
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def _identifier(stem: str) -> str:
    """A file's name as part of a module's: of a dotted one, pickle would ask for the package before the dot."""
    return "".join(letter if f"_{letter}".isidentifier() else "_" for letter in stem)


def entry(module: ModuleType, names: tuple[str, ...]) -> tuple[str, Callable[..., Any]]:
    """The first of `names` that the module defines as something to call: a class, a function, a partial one; with its
    name.

    Raises LoadFault (`missing_entry`)."""
    for name in names:
        found = getattr(module, name, None)
        if callable(found):
            return name, found
    file = Path(module.__file__ or "").name
    raise LoadFault("missing_entry", f"{file} defines no {' or '.join(names)} that can be called")


def _replacements(statement: ast.stmt, overrides: dict[str, Any]) -> list[ast.stmt]:
    names = sorted(_targets(statement) & overrides.keys())
    return [ast.copy_location(ast.parse(f"{name} = {overrides[name]!r}").body[0], statement) for name in names]


def _targets(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            roots: list[ast.expr] = list(targets)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            roots = [target]
        case _:
            return set()
    return {node.id for root in roots for node in ast.walk(root) if isinstance(node, ast.Name)}
