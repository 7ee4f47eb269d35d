"""Compiler output -> the first error, with file and line of the candidate itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

# g++ and clang: file:12:5: error: text · nvcc: file(12): error: text · the linker: undefined reference to `x'
PATTERNS = (
    re.compile(r"^(?P<file>[^\s:()][^:()\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.+)$", re.MULTILINE),
    re.compile(
        r"^(?P<file>[^\s:()][^:()\n]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\S+)?: (?P<text>.+)$", re.MULTILINE
    ),
    re.compile(r"^(?P<text>.*undefined reference to .+)$", re.MULTILINE),
    re.compile(
        r"^(?P<text>nvcc fatal\s*: .+|c\+\+: error: .+|g\+\+: error: .+|ptxas (?:fatal|error)\s*: .+)$", re.MULTILINE
    ),
)


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One compiler error. `line` is of the candidate's Python file, 0 where it could not be traced back to it."""

    text: str
    line: int = 0
    source_line: str = ""
    generated_file: str = ""
    generated_line: int = 0


def first_error(output: str, candidate: Path) -> Diagnostic:
    """The earliest error in a build's output, traced to the candidate's string literal that holds its line."""
    found = min(
        (match for pattern in PATTERNS if (match := pattern.search(output))),
        key=lambda match: match.start(),
        default=None,
    )
    if found is None:
        lines = [line for line in output.splitlines() if line.strip()]
        return Diagnostic(text=lines[-1][:300] if lines else "the build failed without a word")
    groups = found.groupdict()
    text = groups["text"].strip()[:500]
    file, number = groups.get("file") or "", int(groups.get("line") or 0)
    line, source_line = trace_back(Path(file), number, candidate) if file else (0, "")
    return Diagnostic(
        text=text, line=line, source_line=source_line[:300], generated_file=Path(file).name, generated_line=number
    )


def trace_back(generated: Path, number: int, candidate: Path) -> tuple[int, str]:
    """Line of `candidate` that line `number` of the generated file came from, and its text; 0 where it came from none.

    The generated file is the candidate's strings joined with lines of torch's own, so each string literal is looked up
    in it as a block.
    """
    try:
        lines = generated.read_text(errors="replace").splitlines()
        source = candidate.read_text(errors="replace")
    except OSError:
        return 0, ""
    if not 1 <= number <= len(lines):
        return 0, ""
    text = lines[number - 1]
    if generated.resolve() == candidate.resolve():
        return number, text.strip()
    own = source.splitlines()
    # The longest first: a short string may stand inside another one by chance.
    for block, first in sorted(_string_blocks(source), key=lambda found: -len(found[0])):
        for start in _occurrences(block, lines):
            position = first + number - 1 - start
            if start <= number - 1 < start + len(block) and position <= len(own) and text.strip() in own[position - 1]:
                return position, text.strip()
    matches = [index for index, line in enumerate(own, 1) if text.strip() and line.strip() == text.strip()]
    return (matches[0] if len(matches) == 1 else 0), text.strip()


def _string_blocks(source: str) -> Iterator[tuple[list[str], int]]:
    """The string literals of a Python file as lines, with the file's line that each begins on."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
            yield node.value.splitlines(), node.lineno


def _occurrences(block: list[str], lines: list[str]) -> Iterator[int]:
    for start in range(len(lines) - len(block) + 1):
        if lines[start : start + len(block)] == block:
            yield start
