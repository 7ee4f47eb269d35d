"""Compiler output -> the first errors, with file and line of the candidate itself, and how to mend them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness import wording
from harness.catalog.facts import Diagnostic as Diagnostic
from harness.compile import hints

# g++ and clang: file:12:5: error: text · nvcc: file(12): error: text · linker, ptxas and loader: no line
PATTERNS = (
    re.compile(r"^(?P<file>[^\s:()][^:()\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.+)$", re.MULTILINE),
    re.compile(
        r"^(?P<file>[^\s:()][^:()\n]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\S+)?: (?P<text>.+)$", re.MULTILINE
    ),
    re.compile(r"^(?P<text>.*(?:undefined reference to |multiple definition of |: cannot find -l).+)$", re.MULTILINE),
    re.compile(
        r"^(?P<text>nvcc fatal\s*: .+|c\+\+: error: .+|g\+\+: error: .+|ptxas (?:fatal|error)\s*: .+"
        r"|ptxas \S+, line \d+; error\s*: .+)$",
        re.MULTILINE,
    ),
    re.compile(
        r"(?P<text>undefined symbol: \S+|dynamic module does not define module export function .+)$", re.MULTILINE
    ),
)
# Where the candidate asked for what failed inside a header: g++ says so before the error, nvcc behind it.
REQUIRED = re.compile(r"^(?P<file>[^\s:()][^:()\n]*):(?P<line>\d+):(?:\d+:)?\s+required from", re.MULTILINE)
INSTANTIATED = re.compile(r"at line (?P<line>\d+) of (?P<file>\S+)$", re.MULTILINE)
QUOTED_LINES = 12
MOST = 3


def first_error(output: str, candidate: Path) -> Diagnostic:
    """The earliest error in a build's output, or its last words where none is recognised."""
    found = errors(output, candidate, most=1)
    if found:
        return found[0]
    lines = [line for line in output.splitlines() if line.strip()]
    return Diagnostic(text=lines[-1][:300] if lines else "the build failed without an error message")


def errors(output: str, candidate: Path, most: int = MOST) -> list[Diagnostic]:
    """The earliest errors in a build's output, each traced to the candidate's string literal that holds its line."""
    matches = sorted((match for pattern in PATTERNS for match in pattern.finditer(output)), key=lambda m: m.start())
    found: list[Diagnostic] = []
    for index, match in enumerate(matches):
        before = output[matches[index - 1].end() if index else 0 : match.start()]
        rest = output[match.end() : matches[index + 1].start() if index + 1 < len(matches) else len(output)]
        diagnostic = _diagnostic(match, before, "\n".join(rest.splitlines()[1 : 1 + QUOTED_LINES]), candidate)
        # nvcc compiles for host and device, and a file may be included twice: each error counts once.
        if (diagnostic.text, diagnostic.line) not in {(known.text, known.line) for known in found}:
            found.append(diagnostic)
        if len(found) == most:
            break
    return found


def _diagnostic(match: re.Match[str], before: str, behind: str, candidate: Path) -> Diagnostic:
    groups = match.groupdict()
    places = [(groups["file"], int(groups["line"]))] if groups.get("file") else []
    asked = [*REQUIRED.finditer(before), *INSTANTIATED.finditer(behind)] if places else []
    places += [(place["file"], int(place["line"])) for place in asked]
    traced = [(*trace_back(Path(file), line, candidate), file, line) for file, line in places]
    line, source_line, file, number = next((place for place in traced if place[0]), (traced or [(0, "", "", 0)])[0])
    text = groups["text"].strip()
    return Diagnostic(
        text=_demangled(text)[:500],
        line=line,
        source_line=source_line[:300],
        generated_file=Path(file).name,
        generated_line=number,
        hint=hints.hint(f"{text}\n{behind}"),
    )


def _demangled(text: str) -> str:
    tool = shutil.which("c++filt") if "_Z" in text else None
    if tool is None:
        return text
    result = subprocess.run([tool], input=text, capture_output=True, text=True, timeout=20, check=False)
    return result.stdout.strip() or text


def trace_back(generated: Path, number: int, candidate: Path) -> tuple[int, str]:
    """Line of `candidate` that line `number` of the generated file came from, and its text; 0 where it came from none.

    The generated file is the candidate's strings joined with lines of torch's own, so each string literal is looked up
    in it as a block.
    """
    try:
        lines = wording.lines(generated.read_text(errors="replace"))
        source = candidate.read_text(errors="replace")
    except OSError:
        return 0, ""
    if not 1 <= number <= len(lines):
        return 0, ""
    text = lines[number - 1]
    if generated.resolve() == candidate.resolve():
        return number, text.strip()
    own = wording.lines(source)
    # The longest first: a short string may stand inside another one by chance.
    for block, first in sorted(_string_blocks(source), key=lambda found: -len(found[0])):
        for start in _occurrences(block, lines):
            position = first + number - 1 - start
            if start <= number - 1 < start + len(block) and position <= len(own) and text.strip() in own[position - 1]:
                return position, text.strip()
    # A string put together as the module ran (f-string, format, replace): the line itself, if it stands there once.
    matches = [index for index, line in enumerate(own, 1) if text.strip() and _undoubled(line) == text.strip()]
    return (matches[0] if len(matches) == 1 else 0), text.strip()


def _undoubled(line: str) -> str:
    """The line as an f-string or str.format leaves it."""
    return line.strip().replace("{{", "{").replace("}}", "}")


def _string_blocks(source: str) -> Iterator[tuple[list[str], int]]:
    """The string literals of a Python file as lines, with the file's line that each begins on."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
            yield wording.lines(node.value), node.lineno


def _occurrences(block: list[str], lines: list[str]) -> Iterator[int]:
    for start in range(len(lines) - len(block) + 1):
        if lines[start : start + len(block)] == block:
            yield start
