"""A kernel file's own PYBIND11_MODULE block, which only the host compiler has to read.

The passes that look for kernels read the file without it, and so without pybind11's headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MACRO = "PYBIND11_MODULE"
ALIAS = re.compile(r"^[ \t]*namespace\s+\w+\s*=\s*(?:::\s*)?pybind11\s*;", re.MULTILINE)
# Literals, which may hold brackets, and brackets.
TOKEN = re.compile(r"""R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[(){}]""", re.DOTALL)
# What would make the device's passes need it: kernels, and functions that may launch an instance of one.
DEVICE = re.compile(r"<<<|\b__(?:global|device|host|managed|constant|shared)__\b|&\s*[\w:]+\s*<")
DEFINE = re.compile(r"^#define (\w+)\b.*$", re.MULTILINE)


def cut(text: str) -> tuple[str, str]:
    """Text without comments, less its block and its names for the namespace pybind11; and these.

    The second is empty where there is no block. Raises ValueError where it is not one block of host code by itself.
    """
    starts = [match.start() for match in re.finditer(rf"\b{MACRO}\b", text)]
    if not starts:
        return text, ""
    if len(starts) > 1:
        raise ValueError(f"more than one {MACRO}")
    begin = starts[0]
    if _depth(text[:begin]):
        raise ValueError(f"{MACRO} within something else")
    end = _end_of_body(text, begin)
    block = text[begin:end]
    if DEVICE.search(block):
        raise ValueError(f"kernels in {MACRO}")
    rest = text[:begin] + "\n" * block.count("\n") + text[end:]
    aliases = "".join(f"{match[0].strip()}\n" for match in ALIAS.finditer(rest))
    return ALIAS.sub("", rest), aliases + block + "\n"


def definitions(macros: str) -> str:
    """Of all macros, as `-dM` prints them, those that a block's expansion goes through."""
    known = {match[1]: match[0] for match in DEFINE.finditer(macros)}
    found: dict[str, str] = {}
    wanted = [MACRO]
    while wanted:
        name = wanted.pop()
        if name in known and name not in found:
            found[name] = known[name]
            wanted += re.findall(r"\w+", known[name])
    return "".join(f"{line}\n" for line in found.values())


def _depth(text: str) -> int:
    """How many braces are open at the end."""
    tokens = list(_brackets(text, 0))
    return sum(token == "{" for token, _ in tokens) - sum(token == "}" for token, _ in tokens)


def _end_of_body(text: str, begin: int) -> int:
    """Behind the brace that closes the first one behind `begin`."""
    depth = 0
    for token, end in _brackets(text, begin):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if token == "}" and depth == 0:
            return end
    raise ValueError(f"{MACRO} without an end")


def _brackets(text: str, begin: int) -> Iterable[tuple[str, int]]:
    """Brackets outside of literals, and where each ends."""
    return ((match[0], match.end()) for match in TOKEN.finditer(text, begin) if match[0] in "(){}")
