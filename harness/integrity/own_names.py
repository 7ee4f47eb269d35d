"""Which kernels belong to a candidate: those compiled into its extensions or defined in its file.

Only a process that may crash imports this (reading.reader), because it searches content that the candidate made.
"""

from __future__ import annotations

import ast
import bisect
import mmap
import re
from collections.abc import Iterable, Iterator, Sequence

from harness.catalog.facts import LONGEST_NAME, MOST_NAMES
from harness.integrity import cxx
from harness.integrity.kernel_names import ANONYMOUS, qualified

# An anonymous namespace in mangled names; nvcc adds the file's name and a hash.
ANONYMOUS_MANGLED = rb"\d+_GLOBAL__N_\w{0,300}?"
HAS_NAMELESS = re.compile(rb"(?<!\w)_ZN(?=\w{0,2000}_GLOBAL__N_)")
WORD_LETTER = re.compile(rb"[\w.]")
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
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
            begun, ended, nameless = _Spelt(), _Spelt(), dict[int, re.Pattern[bytes]]()
            for place, name in names.items():
                _sort(place, name, begun, ended, nameless)
            return _mangled_in(content, begun) | _plain_in(content, ended) | _nameless_in(content, nameless)
    except (OSError, ValueError):
        # Empty: then nothing of it ran.
        return set()


class _Spelt:
    """Spellings, of which those that a text begins with are found at once, however many there are."""

    def __init__(self) -> None:
        self.places: dict[bytes, set[int]] = {}

    def add(self, spelling: bytes, place: int) -> None:
        self.places.setdefault(spelling, set()).add(place)

    def close(self) -> None:
        """After the last one: order them, each behind the longest of the others that it begins with."""
        self._ordered = sorted(self.places)
        self._within: dict[bytes, bytes] = {}
        open_ones: list[bytes] = []
        for spelling in self._ordered:
            while open_ones and not spelling.startswith(open_ones[-1]):
                open_ones.pop()
            if open_ones:
                self._within[spelling] = open_ones[-1]
            open_ones.append(spelling)
        self.longest = max(map(len, self._ordered), default=0)

    def at(self, text: bytes) -> Iterator[bytes]:
        """Those that the text begins with."""
        # The longest is the last one that is not behind the text in their order, or one that this begins with.
        last = bisect.bisect_right(self._ordered, text) - 1
        one = self._ordered[last] if last >= 0 else None
        while one is not None:
            if text.startswith(one):
                yield one
            one = self._within.get(one)


def _sort(place: int, name: str, begun: _Spelt, ended: _Spelt, nameless: dict[int, re.Pattern[bytes]]) -> None:
    """Where to look for a kernel's name as libraries hold it: nowhere, where there is no name."""
    parts = [] if name.startswith("_Z") else qualified(name)
    if name.startswith("_Z"):
        begun.add(name.encode(), place)
    elif ANONYMOUS in parts:
        if parts.count(ANONYMOUS) <= MOST_ANONYMOUS:
            nameless[place] = re.compile(_nameless(parts))
    elif parts:
        # What the mangled name of a function begins with (Itanium C++ ABI), or all of an `extern "C"` one.
        spelt = b"".join(b"%d%b" % (len(part.encode()), part.encode()) for part in parts)
        for start in [b"_ZN"] if len(parts) > 1 else [b"_Z", b"_ZL"]:
            begun.add(start + spelt, place)
        if len(parts) == 1:
            ended.add(parts[0].encode()[::-1], place)


def _nameless(parts: Sequence[str]) -> bytes:
    # Only from its own start, so that no byte is read twice, whatever a library repeats.
    return rb"(?<!\w)_ZN" + b"".join(
        ANONYMOUS_MANGLED if part == ANONYMOUS else re.escape(b"%d%b" % (len(part.encode()), part.encode()))
        for part in parts
    )


def _mangled_in(content: mmap.mmap, begun: _Spelt) -> set[int]:
    begun.close()
    found: set[int] = set()
    for start in re.finditer(b"_Z", content) if begun.places else ():
        for spelling in begun.at(content[start.start() : start.start() + begun.longest]):
            found |= begun.places[spelling]
    return found


def _plain_in(content: mmap.mmap, ended: _Spelt) -> set[int]:
    """Those that end where a text of C ends, and begin no later than a word does."""
    ended.close()
    if not ended.places:
        return set()
    found: set[int] = set()
    last_letters = re.escape(bytes({spelling[0] for spelling in ended.places}))
    for end in re.finditer(b"[" + last_letters + b"]\0", content):
        stop = end.end() - 1
        before = content[max(0, stop - ended.longest - 1) : stop][::-1]
        for spelling in ended.at(before):
            if not WORD_LETTER.match(before, len(spelling)):
                found |= ended.places[spelling]
    return found


def _nameless_in(content: mmap.mmap, patterns: dict[int, re.Pattern[bytes]]) -> set[int]:
    left = dict(patterns)
    for start in HAS_NAMELESS.finditer(content) if left else ():
        for place in [place for place, pattern in left.items() if pattern.match(content, start.start())]:
            del left[place]
    return patterns.keys() - left.keys()
