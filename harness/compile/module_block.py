"""A kernel file's own PYBIND11_MODULE block, which only the host compiler has to read.

The passes that look for kernels read the file without it, and so without pybind11's headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MACRO = "PYBIND11_MODULE"
ALIAS = re.compile(r"^[ \t]*namespace\s+\w+\s*=\s*(?:::\s*)?pybind11\s*;", re.MULTILINE)
# lean.LITERAL, which the script that uses both in a sandbox cannot import here.
LITERAL = r"""(?<!\w)\d(?:'?[\w.])*+|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
TOKEN = re.compile(rf"{LITERAL}|[{{}}]", re.DOTALL)
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
    if [0, *(depth for depth, end in _braces(text) if end <= begin)][-1]:
        raise ValueError(f"{MACRO} within something else")
    end = next((end for depth, end in _braces(text, begin) if depth == 0), None)
    if end is None:
        raise ValueError(f"{MACRO} without an end")
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


def _braces(text: str, begin: int = 0) -> Iterator[tuple[int, int]]:
    """Where each brace outside of literals ends, and how many are open there; the number first."""
    depth = 0
    for match in TOKEN.finditer(text, begin):
        if match[0] in "{}":
            depth += 1 if match[0] == "{" else -1
            yield depth, match.end()
