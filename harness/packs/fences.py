"""The fenced blocks of a Markdown text, those that are broken included. Knows nothing of what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r"([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+(.*)\Z", re.DOTALL)
# Some models write a sign of their own before it.
LATE = re.compile(r"[^`]*+()(`{3,}+)((?:python|py)[ \t]*+)\Z", re.ASCII | re.IGNORECASE)
TAG = re.compile(r"[\w.+#-]+\Z", re.ASCII)


class Block(NamedTuple):
    """A block without its fences, from line `first` to line `last` of the text; `fault`: why it is not whole."""

    text: str
    first: int
    last: int
    fault: str = ""


def blocks(text: str) -> Iterator[Block]:
    """The blocks in their order.

    A fence for Python may begin one at the end of a line. A fence of at least as many of the same signs, and nothing
    else on its line, ends one. So does one with a language, and begins the next: the first was never closed.
    """
    opened: re.Match[str] | None = None
    begin, lines = 0, list[str]()
    number = 0
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line) or (LATE.match(line) if opened is None else None)
        if opened is None:
            if fence and not (fence[2][0] == "`" and "`" in fence[3]):
                opened, begin, lines = fence, number + 1, []
        elif fence and fence[2].startswith(opened[2]) and not fence[3].strip():
            yield Block("\n".join(lines), begin, number - 1)
            opened = None
        elif fence and fence[2].startswith(opened[2]) and TAG.match(fence[3].strip()):
            yield Block("\n".join(lines), begin, number - 1, "another fence opens before it is closed")
            opened, begin, lines = fence, number + 1, []
        else:
            lines.append(_without(line, opened[1]))
    if opened is not None:
        yield Block("\n".join(lines), begin, number, "its fence is never closed")


def _without(line: str, indent: str) -> str:
    """The line without the indentation that its block has as a whole, in a list for example."""
    if line.startswith(indent):
        return line[len(indent) :]
    return line.lstrip(" \t") if not line[: len(indent)].strip() else line
