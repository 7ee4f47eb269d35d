"""Does a candidate's file keep to the contract with its problem, as far as reading tells? Nothing is run."""

from __future__ import annotations

import ast
import re

import msgspec

from harness.catalog import modules
from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate

ENTRIES = ("ModelNew", "Model")
METHODS = ("__init__", "forward")
# Half is in neither of them; the names that end in AND, AND_HALF and so on are other macros.
NO_HALF = re.compile(r"\bAT_DISPATCH_FLOATING_TYPES\s*\(|\bAT_DISPATCH_ALL_TYPES\s*\(")


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One departure. `fatal` where the candidate cannot be evaluated with it; `line` is 0 for the file as a whole."""

    text: str
    line: int = 0
    fatal: bool = False


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters behind `self`. `most` is None where any number is taken."""

    names: list[str]
    least: int
    most: int | None
    line: int


def remarks(candidate: Candidate, problem: Problem | None) -> list[Remark]:
    """What departs from the contract; nothing of a file that cannot be parsed, which loading it says."""
    try:
        tree = modules.parse(candidate.path)
    except modules.LoadFault:
        return []
    found = []
    if not candidate.caption:
        found.append(Remark(text="no docstring: its first line is the candidate's caption in reports"))
    entry = next((name for name in ENTRIES if name in _defined(tree)), None)
    if entry is None:
        found.append(Remark(text="defines no class ModelNew or Model", fatal=True))
    if problem is None or problem.fault:
        if b"cpp_extension" in candidate.source and compiles_in_functions(tree):
            text = "compiles inside a function, and no problem was found to construct the class for"
            found.append(Remark(text=f"{text}: name it with --problems"))
        return found
    reference = _class(modules.parse(problem.path), "Model")
    own = _class(tree, entry) if entry else None
    for method in METHODS if own and reference else ():
        mine, theirs = _signature(own, method), _signature(reference, method)
        if mine and theirs:
            found += _difference(method, mine, theirs)
    if problem.precision in ("float16", "bfloat16"):
        found += [
            Remark(
                text=f"the problem is {problem.precision}, which {match.group().rstrip('( ')} leaves out: "
                "AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, ...) takes it",
                line=node.lineno + node.value[: match.start()].count("\n"),
            )
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for match in NO_HALF.finditer(node.value)
        ]
    return found


def compiles_in_functions(tree: ast.Module) -> bool:
    """Whether a `load_inline` or `load` call of torch's stands inside a function, where importing does not reach it."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for node in ast.walk(function):
            name = getattr(node, "attr", None) or getattr(node, "id", None)
            if name in ("load_inline", "load"):
                return True
    return False


def _difference(method: str, mine: Signature, theirs: Signature) -> list[Remark]:
    if mine.most is None or (mine.names, mine.least, mine.most) == (theirs.names, theirs.least, theirs.most):
        return []
    text = f"{method} takes {_shown(mine)}; the problem's takes {_shown(theirs)}"
    too_few = theirs.least > mine.most
    too_many = theirs.most is not None and mine.least > theirs.most
    return [Remark(text=text, line=mine.line, fatal=too_few or too_many)]


def _shown(signature: Signature) -> str:
    return f"({', '.join(signature.names)})"


def _signature(owner: ast.ClassDef | None, method: str) -> Signature | None:
    """The method's own, or None where it is inherited from a class that is not read here."""
    if owner is None:
        return None
    function = next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == method), None)
    if function is None:
        plain = method == "__init__" and [ast.unparse(base) for base in owner.bases] in (
            ["nn.Module"],
            ["torch.nn.Module"],
        )
        return Signature(names=[], least=0, most=0, line=owner.lineno) if plain else None
    if function.decorator_list:
        return None
    positional = [*function.args.posonlyargs, *function.args.args][1:]
    return Signature(
        names=[argument.arg for argument in positional],
        least=len(positional) - min(len(function.args.defaults), len(positional)),
        most=None if function.args.vararg else len(positional),
        line=function.lineno,
    )


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    return next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None)


def _defined(tree: ast.Module) -> set[str]:
    """Names that the module may hold a class under: defined, imported or assigned, also below an `if` or `try`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found
