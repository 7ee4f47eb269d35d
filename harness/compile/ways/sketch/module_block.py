"""A kernel file's own PYBIND11_MODULE block, which only the host compiler has to read.

The passes that look for kernels read the file without it, and so without pybind11's headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from harness.catalog.cpp_tokens import Kind, tokens
from harness.compile.ways.way import NotThisWay

MACRO = "PYBIND11_MODULE"
ALIAS = re.compile(r"^[ \t]*namespace\s+\w+\s*=\s*(?:::\s*)?pybind11\s*;", re.MULTILINE)
STEPS = {"{": 1, "}": -1}
MARK = re.compile(rf"\b{MACRO}\b|[{{}}]")
# What would make the device's passes need it: kernels, and functions that may launch an instance of one.
DEVICE = re.compile(r"<<<|\b__(?:global|device|host|managed|constant|shared)__\b|&\s*[\w:]+\s*<")
DEFINE = re.compile(r"^#define (\w+)\b.*$", re.MULTILINE)


def cut(text: str) -> tuple[str, str]:
    """Text without comments, less its block and its names for the namespace pybind11; and these.

    The second is empty where there is no block. Raises NotThisWay where it is not one block of host code by itself.
    """
    if MACRO not in text:
        return text, ""
    marks = list(_marks(text))
    places = [place for place, (word, _, _) in enumerate(marks) if word == MACRO]
    if not places:
        return text, ""
    if len(places) > 1:
        raise NotThisWay(f"more than one {MACRO}")
    (place,) = places
    if sum(STEPS[word] for word, _, _ in marks[:place]):
        raise NotThisWay(f"{MACRO} within something else")
    begin, behind = marks[place][1], marks[place + 1 :]
    depths = accumulate(STEPS[word] for word, _, _ in behind)
    end = next((end for depth, (_, _, end) in zip(depths, behind, strict=True) if depth == 0), None)
    if end is None:
        raise NotThisWay(f"{MACRO} without an end")
    block = text[begin:end]
    if DEVICE.search(block):
        raise NotThisWay(f"kernels in {MACRO}")
    rest = text[:begin] + "\n" * block.count("\n") + text[end:]
    aliases = "".join(f"{match[0].strip()}\n" for match in ALIAS.finditer(rest))
    return ALIAS.sub("", rest), aliases + block + "\n"


def definitions(macros: str) -> str:
    """The macros that a block's expansion goes through; `macros` are all, as `-dM` prints them."""
    known = {match[1]: match[0] for match in DEFINE.finditer(macros)}
    found: dict[str, str] = {}
    wanted = [MACRO]
    while wanted:
        name = wanted.pop()
        if name in known and name not in found:
            found[name] = known[name]
            wanted += re.findall(r"\w+", known[name])
    return "".join(f"{line}\n" for line in found.values())


def _marks(text: str) -> Iterator[tuple[str, int, int]]:
    """Every brace and every mention of the block in the text's code, with where it begins and ends."""
    position = 0
    for kind, piece in tokens(text):
        if kind is Kind.CODE:
            for match in MARK.finditer(piece):
                yield match[0], position + match.start(), position + match.end()
        position += len(piece)
