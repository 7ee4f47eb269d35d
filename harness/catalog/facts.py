"""What the session knows of a file: what a process of its own (worker.reader) has read there, typed and bounded.

The session itself reads nothing out of a file that others wrote: parsers and regular expressions have been made to
crash, to hang and to run out of stack by a text.
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

    `kind` is one of integrity.findings.KINDS. A `warning` is for a reader to look at; anything else is for information:
    honest candidates do it every day.
    """

    line: int
    kind: Name
    text: Text
    warning: bool = False


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One compiler error. `line` is of the candidate's Python file, 0 where it could not be traced back to it; `hint`
    is empty where no usual cause fits."""

    text: str
    line: int = 0
    source_line: str = ""
    generated_file: str = ""
    generated_line: int = 0
    hint: str = ""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters behind `self`. `most` is None where any number is taken."""

    names: Names
    least: int
    most: int | None
    line: int


class HeadersWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which precompiled headers a file can use: optimisation levels it may pass, and what its kernels include."""

    cpp_levels: Names = []
    cuda_levels: Names = []
    cuda: bool = False
    context: bool = False
    module: bool = False


class CandidateFacts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is read in a candidate's file.

    `parsed`: Python's parser takes it. `entry` is the class to evaluate, `methods` its own of contract.METHODS, as far
    as reading tells. `kernels` are names of kernels that the file writes itself. `without_half`: line and macro of
    dispatches that leave half precision out.
    """

    parsed: bool = False
    caption: Text = ""
    entry: Name = ""
    methods: dict[str, Signature] = {}
    # It can reach a compiler of ours, passes -march=native or the like, may ask where it lies.
    needs_build: bool = False
    native: bool = False
    asks_its_place: bool = False
    compiles_in_functions: bool = False
    headers: HeadersWanted = HeadersWanted()
    findings: Annotated[list[ScreenFinding], msgspec.Meta(max_length=MOST_FINDINGS)] = []
    kernels: Names = []
    without_half: Annotated[list[tuple[int, Name]], msgspec.Meta(max_length=MOST_FINDINGS)] = []


class ProblemFacts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a problem's file declares. `meant_as_one`: it is no helper that lies beside problems."""

    fault: str = ""
    meant_as_one: bool = True
    precision: str = "float32"
    variants: dict[str, dict[str, Any]] = {}
    constants: frozenset[str] = frozenset()
    methods: dict[str, Signature] = {}


class Reads(Protocol):
    """Who reads files for the session. What cannot be read is an outcome: a load error that names the reason."""

    def candidate(self, source: bytes, file: str) -> CandidateFacts | Outcome: ...

    def problem(self, source: bytes, file: str) -> ProblemFacts | Outcome: ...
