"""Whether a failure over smaller headers is the candidate's own, so that torch's headers would not change it.

Then no other way is tried: a build that fails takes no longer than one that succeeds. Only the first error counts,
since later ones may follow from it, and only in a source file: a header may miss what another one would have brought.
In doubt the answer is no. Standard library only.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.compile.ways.preprocessed import SOURCES, Preprocessed

# g++: file:12:5: error: text · nvcc: file(12): error: text · ptxas and the loader name no line.
FIRST = re.compile(
    r"^(?P<file>[^\s:()][^:()\n]*)(?::\d+:(?:\d+:)? (?:fatal )?error|\(\d+\): (?:catastrophic )?error(?: #\S+)?): "
    r"(?P<text>.+)$"
    r"|(?P<tool>^ptxas (?:error|fatal)\s*:.*$|^ptxas \S+, line \d+; error.*$|undefined symbol: (?P<symbol>\w+))",
    re.MULTILINE,
)
# g++ quotes by U+2018 and U+2019 where the locale has them.
_NAME = r"[\u2018'\"](?:[\w:]*::)?~?(?P<name>[A-Za-z_]\w*)[\u2019'\"]"
# Of names that are not there: the whole message by g++, or by nvcc.
UNKNOWN = re.compile(
    rf"{_NAME} (?:was not declared|has not been declared|does not name a type|is not a member of"
    rf"|is not a class, namespace|in namespace .* does not name)"
    rf"|.* has no member(?: named)? {_NAME.replace('name', 'member')}"
    rf"|identifier {_NAME.replace('name', 'identifier')} is undefined"
)
ABSENT_HEADER = re.compile(r"(?P<header>\S+): No such file or directory|cannot open source file \"(?P<other>[^\"]+)\"")
# What is wrong with the text as it stands, whatever else is declared: all names before it were found. Of what is
# expected punctuation alone: a class-name or a type is one that a header may declare.
SYNTAX = re.compile(
    r"expected (?:a )?[\u2018'\"]\W|missing terminating|unterminated |stray |unrecognized token|extra text after"
)
# What is wrong between types that are known: true with torch's own classes, which the sketch only outlines.
TYPES = re.compile(
    r"too (?:few|many) arguments|argument of type |a value of type |no suitable |cannot convert |invalid conversion"
    r"|expression must have |return value type |redefinition of |conflicting declaration"
    r"|.* has already been (?:declared|defined)|calling a __host__ function|a __global__ function"
)
# A function at the top level, or a name of C's: torch's headers define none of the candidate's.
TOP_LEVEL = re.compile(r"_Z\d|(?!_Z)")


# What a compiler of ours prints that has found out for itself.
SAID = "torch's own headers would not change this error"


def is_certain(
    output: str, includes: Iterable[str], read: Callable[[], Preprocessed | None], *, torch_headers: bool
) -> bool:
    """Whether the first error in a failed build's output stays with torch's own headers.

    `includes` are the include folders that the compiler was given, and `read` tells what it would read with torch's own
    headers, if that can be had; `torch_headers` says that classes were torch's own and only declarations may be
    missing, not a sketch of them.
    """
    first = FIRST.search(output)
    if first is None:
        return False
    if SAID in output:
        return True
    if first["symbol"]:
        return TOP_LEVEL.match(first["symbol"]) is not None
    if first["tool"]:
        return True
    text = first["text"]
    if Path(first["file"]).suffix not in SOURCES:
        return False
    if absent := ABSENT_HEADER.match(text):
        name = absent["header"] or absent["other"]
        return not any((Path(folder) / name).exists() for folder in [*includes, *_system_includes()])
    if unknown := UNKNOWN.match(text):
        # A class is whole or not there; a namespace has what its headers put into it.
        if torch_headers and unknown["member"] and "namespace" not in text:
            return True
        text = read()
        return text is not None and not text.knows(unknown["name"] or unknown["member"] or unknown["identifier"])
    return bool(SYNTAX.match(text) or (torch_headers and TYPES.match(text)))


def first_error_line(output: str) -> str:
    """The first error in a build's output as its tool wrote it; the first line where none is recognised."""
    first = FIRST.search(output)
    return first[0] if first else output.strip().partition("\n")[0]


def includes_in(command: str) -> list[str]:
    """The include folders in a compiler's command line, or in the output of a build that shows it."""
    return list(dict.fromkeys(re.findall(r"(?:^|\s)(?:-I|-isystem) ?(/\S+)", command)))


@functools.cache
def _system_includes() -> tuple[str, ...]:
    """Where the C++ compiler looks by itself."""
    command = [os.environ.get("CXX", "c++"), "-E", "-v", "-x", "c++", os.devnull]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    _, _, listed = said.partition("#include <...> search starts here:")
    return tuple(line.strip() for line in listed.partition("End of search list")[0].splitlines() if line.strip())
