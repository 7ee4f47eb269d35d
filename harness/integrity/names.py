"""Names in a syntax tree as the modules that own them would spell them: `F.relu` -> `torch.nn.functional.relu`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

# No name that anybody asks for is longer, and joining long ones to each other takes as long as both.
LONGEST = 300


def joined(owner: str, name: str) -> str:
    """The dotted name of what an owner calls `name`; empty without an owner, or if it is too long to be of interest."""
    return f"{owner}.{name}" if owner and len(owner) + len(name) < LONGEST else ""


class Names:
    """Follows imports, plain aliases (`mm = torch.mm`), `getattr` with a literal, `self.x = nn.Linear(...)` and
    `x = load_inline(...)`."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        # What `of` has found, so that a chain of attributes is followed once, however many ask for its parts.
        self._spelt: dict[ast.AST, str] = {}
        self._known: dict[str, str] = {}
        self._held: dict[str, str] = {}
        self._made: dict[str, set[str]] = {}
        self._own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    # `import a.b` binds a; `import a.b as c` binds c to a.b.
                    first = alias.name.partition(".")[0]
                    meant = alias.name if alias.asname else first
                    self._known[alias.asname or first] = meant if len(meant) <= LONGEST else ""
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self._known[alias.asname or alias.name] = joined(node.module, alias.name)
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._learn(node.targets[0], node.value)
        # Found before all aliases were known.
        self._spelt.clear()

    def of(self, node: ast.AST) -> str:
        """The dotted name that an expression stands for; empty if reading does not show it."""
        if node in self._spelt:
            return self._spelt[node]
        found = ""
        if isinstance(node, ast.Name):
            builtin = hasattr(builtins, node.id) and node.id not in self._own
            found = self._known.get(node.id, f"builtins.{node.id}" if builtin else "")
        elif isinstance(node, ast.Attribute):
            found = joined(self.of(node.value), node.attr)
        elif isinstance(node, ast.Call) and self.of(node.func) == "builtins.getattr" and len(node.args) > 1:
            owner, name = self.of(node.args[0]), node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found = joined(owner, name.value)
        self._spelt[node] = found
        return found

    def held(self, node: ast.AST) -> str:
        """What `self.x` was made from in this file: `torch.nn.Linear`; empty for anything else."""
        own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        return self._held.get(node.attr, "") if own else ""  # type: ignore[attr-defined]

    def made(self, node: ast.AST) -> set[str]:
        """What a name was assigned in this file: the dotted names of what was called, "" for anything else."""
        return self._made.get(node.id, set()) if isinstance(node, ast.Name) else set()

    def _learn(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            called = self.of(value.func) if isinstance(value, ast.Call) else ""
            self._made.setdefault(target.id, set()).add(called)
            dotted = self.of(value) if isinstance(value, ast.Attribute) and target.id not in self._known else ""
            if dotted and not dotted.startswith("builtins."):
                self._known[target.id] = dotted
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            called = self.of(value.func) if isinstance(value, ast.Call) else self.of(value)
            if called.startswith("torch."):
                self._held[target.attr] = called
