"""What a file declares, from its syntax tree. Only untrusted processes and the reader import this."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from harness.catalog import modules
from harness.catalog.contract import ENTRIES, METHODS
from harness.catalog.facts import LONGEST_NAME, MOST_FINDINGS, MOST_NAMES, ProblemFacts, Signature, TextFacts
from harness.catalog.problems import PRECISIONS
from harness.errors import nearest

# Neither covers half; macros whose names end in AND, AND_HALF and so on do.
NO_HALF = re.compile(r"AT_DISPATCH_(?:FLOATING|ALL)_TYPES(?=\s*+\()")
# What is in these runs when they are called, not where they stand.
DEFERRED = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.GeneratorExp


REFERENCE = ("Model", "get_inputs", "get_init_inputs")


def problem(tree: ast.Module, file: str) -> ProblemFacts:
    """What a problem's file declares, with its fault if it cannot be used."""
    names = definitions(tree)
    meant = bool({"Model", "get_inputs"} & names)
    try:
        precision = modules.literal(tree, "PRECISION", "float32")
        variants = modules.literal(tree, "VARIANTS", {})
        fault = _fault(names, file, precision, variants)
    except ValueError as error:
        fault = str(error)
    if fault:
        return ProblemFacts(fault=fault, meant_as_one=meant)
    return ProblemFacts(
        meant_as_one=meant,
        precision=precision,
        variants=variants,
        constants=frozenset(modules.assigned_names(tree.body)),
        methods=methods(tree, "Model"),
    )


def text(tree: ast.Module) -> TextFacts:
    """Whether a piece of a text is a problem, a candidate or both."""
    reference = [one for one in tree.body if getattr(one, "name", "") in REFERENCE]
    problem = {getattr(one, "name", "") for one in reference} == set(REFERENCE)
    place = next((one for one in tree.body if _new_ones(one) or "ModelNew" in modules.assigned_names([one])), None)
    if place is None:
        return TextFacts(problem=problem)
    made = _new_ones(place)
    lacks = "" if any(isinstance(one, ast.Import | ast.ImportFrom) for one in ast.walk(tree)) else "it imports nothing"
    if made and not any(_usable(one) for one in made):
        lacks = "its ModelNew has no forward that does anything"
    begin = min([place.lineno, *(one.lineno for one in getattr(place, "decorator_list", []))])
    end = max((one.end_lineno or 0 for one in reference), default=0)
    return TextFacts(
        candidate=not lacks, lacks=lacks, problem=problem, reference_lines=end if problem and end < begin else 0
    )


def definitions(tree: ast.Module) -> set[str]:
    """Classes and functions of the module itself."""
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def entry(nodes: Iterable[ast.AST]) -> str:
    """The name of what makes the module to evaluate, one of ENTRIES; empty if the file cannot have one."""
    names = set(_bound(nodes))
    return next((name for name in ENTRIES if name in names), "")


def methods(tree: ast.Module, name: str) -> dict[str, Signature]:
    """The signatures of METHODS in the class of that name, as far as reading shows them."""
    owner = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None)
    found = {method: _signature(owner, method) for method in METHODS} if owner else {}
    return {method: signature for method, signature in found.items() if signature}


def compiles_later(tree: ast.Module) -> bool:
    """Whether torch's `load_inline` or `load` may be called after the import, as in a constructor.

    Only a file in which each mention of them is an import or a call, and none is in a function, certainly does not:
    what is mentioned without being called may be called by another name.
    """
    names = {"cpp_extension", "load_inline", "load"}
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for statement in statements:
        module = getattr(statement, "module", None) or ""
        of_all = "cpp_extension" in module
        brought = [alias for alias in statement.names if of_all or "cpp_extension" in alias.name]
        names |= {name for alias in brought for name in (alias.asname, alias.name) if name}
    if "*" in names:
        return True
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, in_function = waiting.pop()
        in_function = in_function or isinstance(node, DEFERRED)
        if _mentions(node, names) and (in_function or not isinstance(node, ast.Import | ast.ImportFrom)):
            return True
        for child in ast.iter_child_nodes(node):
            called = isinstance(node, ast.Call) and child is node.func and not in_function
            prose = isinstance(node, ast.Expr) and isinstance(child, ast.Constant)
            if not prose and not (called and _dotted(child)):
                waiting.append((child, in_function))
    return False


def _mentions(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Constant(value=str(text)):
            return "cpp_extension" in text or "load_inline" in text
        case ast.Import() | ast.ImportFrom():
            module = getattr(node, "module", None) or ""
            return "cpp_extension" in module or any("cpp_extension" in alias.name for alias in node.names)
    return False


def without_half(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """Line and macro of the first dispatches that do not cover half precision."""
    found: list[tuple[int, str]] = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for match in NO_HALF.finditer(node.value):
                found.append((node.lineno + node.value.count("\n", 0, match.start()), match[0]))
                if len(found) == MOST_FINDINGS:
                    return found
    return found


def _new_ones(statement: ast.stmt) -> list[ast.ClassDef | ast.FunctionDef]:
    """Classes and functions called `ModelNew` in a statement of a module; one may be below an `if` or `try`."""
    found = (one for one in ast.walk(statement) if isinstance(one, ast.ClassDef | ast.FunctionDef))
    return [one for one in found if one.name == "ModelNew"]


def _usable(owner: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether a class has a forward that is more than a sketch, or may inherit one; a function makes one elsewhere."""
    if isinstance(owner, ast.FunctionDef):
        return True
    forward = next((one for one in owner.body if getattr(one, "name", "") == "forward"), None)
    if isinstance(forward, ast.FunctionDef):
        return not all(
            isinstance(one, ast.Pass) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            for one in forward.body
        )
    bases = [_dotted(base) for base in owner.bases]
    return forward is not None or bool(set(bases) - {"nn.Module", "torch.nn.Module", "Module"})


def _fault(names: set[str], file: str, precision: Any, variants: Any) -> str:
    missing = [name for name in REFERENCE if name not in names]
    if missing:
        return f"{file} defines no {' and no '.join(missing)}"
    if precision not in PRECISIONS:
        return f"{file}: PRECISION is {precision!r}; {nearest(str(precision), PRECISIONS)}"
    try:
        msgspec.convert(variants, dict[str, dict[str, Any]])
        msgspec.json.encode(variants)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError):
        return f"{file}: VARIANTS must map a variant's name to a mapping of constants"
    return ""


def _signature(owner: ast.ClassDef, method: str) -> Signature | None:
    """The method's signature, or None if it is inherited from a class that is not read here."""
    function = next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == method), None)
    if function is None:
        plain = method == "__init__" and [_dotted(base) for base in owner.bases] in (["nn.Module"], ["torch.nn.Module"])
        return Signature(names=[], least=0, most=0, line=owner.lineno) if plain else None
    if function.decorator_list:
        return None
    positional: Sequence[ast.arg] = [*function.args.posonlyargs, *function.args.args][1:]
    return Signature(
        names=[argument.arg[:LONGEST_NAME] for argument in positional[:MOST_NAMES]],
        least=len(positional) - min(len(function.args.defaults), len(positional)),
        most=None if function.args.vararg else len(positional),
        line=function.lineno,
    )


def _dotted(node: ast.AST) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that may refer to what makes a module: defined, imported or assigned, also below an `if` or `try`."""
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
