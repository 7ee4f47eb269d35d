"""What the session knows about a file: typed and bounded facts from the process that reads files (reading.reader).

The session itself parses no file that others wrote: text has made parsers and regular expressions crash, hang and run
out of stack.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec

from harness.records import Outcome

MOST_FINDINGS, MOST_NAMES = 300, 1000
LONGEST_TEXT, LONGEST_NAME = 300, 200

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
Names = Annotated[list[Name], msgspec.Meta(max_length=MOST_NAMES)]


class ScreenFinding(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One remark on a line of the candidate's file.

    `kind` is one of integrity.findings.KINDS. A `warning` deserves a reader's attention; anything else is for
    information: many honest candidates do it.
    """

    line: int
    kind: Name
    text: Text
    warning: bool = False


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One compiler error. `line` is that of the candidate's Python file, 0 if it is not known; `hint` is empty if no
    usual cause fits."""

    text: str
    line: int = 0
    source_line: str = ""
    generated_file: str = ""
    generated_line: int = 0
    hint: str = ""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters after `self`. `most` is None if any number is accepted."""

    names: Names
    least: int
    most: int | None
    line: int


class HeadersWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which precompiled headers a file can use: optimisation levels that it may set, and what its kernels include."""

    cpp_levels: Names = []
    cuda_levels: Names = []
    cuda: bool = False
    context: bool = False
    module: bool = False


class Unparsed(msgspec.Struct, frozen=True, kw_only=True):
    """Why Python's parser refuses a file, in the words of who loads it (sources.LoadFault)."""

    reason: Name
    text: Text
    line: int


class CandidateFacts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is read in a candidate's file.

    `parsed`: Python's parser accepts it; `unparsed` says why not, where it says so. `entry` makes the module to
    evaluate, `methods` are its contract.METHODS as far as reading shows them. `kernels` are names of kernels that the
    file itself defines. `without_half`: line and macro of dispatches that do not cover half precision.
    """

    parsed: bool = False
    unparsed: Unparsed | None = None
    caption: Text = ""
    entry: Name = ""
    methods: dict[str, Signature] = {}
    # It may call a compiler, may do so after the import, passes -march=native or similar, may ask for its own path.
    needs_build: bool = False
    compiles_later: bool = False
    native: bool = False
    asks_its_place: bool = False
    headers: HeadersWanted = HeadersWanted()
    findings: Annotated[list[ScreenFinding], msgspec.Meta(max_length=MOST_FINDINGS)] = []
    kernels: Names = []
    without_half: Annotated[list[tuple[int, Name]], msgspec.Meta(max_length=MOST_FINDINGS)] = []


class ProblemFacts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a problem's file declares. `meant_as_one`: it is not a helper module beside problems."""

    fault: str = ""
    meant_as_one: bool = True
    precision: str = "float32"
    variants: dict[str, dict[str, Any]] = {}
    constants: frozenset[str] = frozenset()
    methods: dict[str, Signature] = {}


class TextFacts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a piece of a foreign text is: a problem, a candidate, both or neither.

    `fault`: why Python's parser refuses it. `candidate`: it has a `ModelNew` that can stand alone; `lacks`: it has one
    that cannot, and why. `problem`: it has all that a problem needs. `reference_lines`: of a text that is both, how
    many lines come before the candidate and hold the whole problem; 0 if no line parts them.
    """

    fault: Text = ""
    candidate: bool = False
    lacks: Text = ""
    problem: bool = False
    reference_lines: int = 0


def mentions_compiler(source: bytes) -> bool:
    """Whether a candidate's file can reach a compiler of ours at all. Nothing is parsed for it."""
    return b"cpp_extension" in source


class ReadsTexts(Protocol):
    """Reads pieces of foreign texts. Does not raise for any of them: `fault` says what is wrong."""

    def text(self, source: bytes) -> TextFacts: ...


class Reads(Protocol):
    """Reads files for the session. For a file that cannot be read, the result is an outcome that names the reason."""

    def candidate(self, source: bytes, file: str) -> CandidateFacts | Outcome: ...

    def problem(self, source: bytes, file: str) -> ProblemFacts | Outcome: ...
