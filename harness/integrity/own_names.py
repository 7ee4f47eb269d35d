"""Which kernels belong to a candidate: those compiled into its extensions or defined in its file.

Only a process that may crash imports this (reading.reader), because it searches content that the candidate made.
"""

from __future__ import annotations

import ast
import mmap
import re
from collections.abc import Iterable, Sequence

from harness.catalog.facts import LONGEST_NAME, MOST_NAMES
from harness.integrity import cxx
from harness.integrity.kernel_names import ANONYMOUS, qualified

# An anonymous namespace in mangled names; nvcc adds the file's name and a hash.
ANONYMOUS_MANGLED = rb"\d+_GLOBAL__N_\w{0,300}?"
# Per name: each is searched for at all places after the one before.
MOST_ANONYMOUS = 2
# Up to the next bracket; bounded, because a text may consist of nothing else.
DECLARED = re.compile(r"__global__\b([^;{}()]{0,400}+)\(")
BOUNDS = re.compile(r"__launch_bounds__\s*+\((?:[^()]|\([^()]{0,200}\)){0,200}\)")


def among(names: Sequence[str], libraries: Iterable[int], written: Iterable[str]) -> list[int]:
    """The indices in `names` (as a profiler reports them) of kernels in `written` or in one of the libraries.

    An extension contains its kernels' names even if it is stripped, because the host registers kernels by name. The
    files, given by descriptor, are only searched for the names; no tool that could be misled parses them.
    """
    own = frozenset(written)
    found = {place for place, name in enumerate(names) if _is_written(qualified(name), own)}
    for descriptor in libraries:
        found |= _held(descriptor, {place: name for place, name in enumerate(names) if place not in found})
    return sorted(found)


def written_kernels(nodes: Iterable[ast.AST]) -> list[str]:
    """Triton functions of a syntax tree, and what its strings declare `__global__`; by name, the first ones."""
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and any(_is_jit(one) for one in node.decorator_list):
            found[node.name] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
            code = BOUNDS.sub(" ", cxx.bare(node.value))
            found |= {re.split(r"\W+", match[1].rstrip())[-1]: None for match in DECLARED.finditer(code)}
    return [name for name in found if name and len(name) <= LONGEST_NAME and name.isprintable()][:MOST_NAMES]


def _is_jit(decorator: ast.expr) -> bool:
    """`@triton.jit`, `@jit`, `@gluon.jit(...)`."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(function, ast.Attribute) and function.attr == "jit") or (
        isinstance(function, ast.Name) and function.id == "jit"
    )


def _is_written(parts: Sequence[str], own: frozenset[str]) -> bool:
    # Old versions of Triton append their specialisation: add_kernel_0d1d2d.
    return len(parts) == 1 and (parts[0] in own or re.sub(r"_[\dcde]+\Z", "", parts[0]) in own)


def _held(descriptor: int, names: dict[int, str]) -> set[int]:
    """The indices of the names that the file contains."""
    patterns = {place: pattern for place, name in names.items() if (pattern := _spelt(name))}
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
            return {place for place, pattern in patterns.items() if re.search(pattern, content)}
    except (OSError, ValueError):
        # Empty: then nothing of it ran.
        return set()


def _spelt(name: str) -> bytes:
    """A pattern for a kernel's name as libraries hold it; empty where there is no name."""
    if name.startswith("_Z"):
        return re.escape(name.encode())
    parts = qualified(name)
    return _mangled(parts) if parts and parts.count(ANONYMOUS) <= MOST_ANONYMOUS else b""


def _mangled(parts: Sequence[str]) -> bytes:
    """What the mangled name of a function begins with (Itanium C++ ABI), or all of an `extern "C"` one."""
    spelt = [
        ANONYMOUS_MANGLED if part == ANONYMOUS else re.escape(f"{len(part.encode())}{part}".encode()) for part in parts
    ]
    if len(parts) > 1:
        # Searched for only from its own start, so that no byte is read twice, whatever a library repeats.
        return (rb"(?<!\w)_ZN" if ANONYMOUS in parts else b"_ZN") + b"".join(spelt)
    plain = re.escape(parts[0].encode())
    return b"_ZL?" + spelt[0] + b"|(?<![\\w.])" + plain + b"\\0"
