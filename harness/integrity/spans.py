"""What lies within which statements of a syntax tree, found in one pass however deep they are nested."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Sequence
from typing import TypeVar

Found = TypeVar("Found")
# The places of the nodes of some statements: from the first up to, and without, the second.
Span = tuple[int, int]
NOWHERE = (0, 0)


class Spans:
    """Numbers all nodes below a root in the order of their text; those within a statement have a span of numbers."""

    def __init__(self, root: ast.AST) -> None:
        self.nodes: list[ast.AST] = []
        self._spans: dict[ast.AST, Span] = {}
        waiting: list[ast.AST | tuple[ast.stmt, int]] = [root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, tuple):
                statement, begin = node
                self._spans[statement] = begin, len(self.nodes)
                continue
            if isinstance(node, ast.stmt):
                # Its turn comes when all within it are numbered.
                waiting.append((node, len(self.nodes)))
            self.nodes.append(node)
            waiting.extend(reversed([*ast.iter_child_nodes(node)]))

    def of(self, body: Sequence[ast.stmt]) -> Span:
        """The span of statements that follow each other."""
        return (self._spans[body[0]][0], self._spans[body[-1]][1]) if body else NOWHERE


class Places(list[tuple[int, Found]]):
    """Something at some of the nodes, with their numbers, in order."""

    def first(self, span: Span) -> Found | None:
        """The first in a span."""
        place = bisect.bisect_left(self, span[0], key=_number)
        return self[place][1] if place < len(self) and self[place][0] < span[1] else None


def _number(entry: tuple[int, object]) -> int:
    return entry[0]
