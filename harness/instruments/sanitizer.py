"""What Compute Sanitizer said of a call: its findings, like ones together. No torch.

Its output: https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/. A place has its file and line where nvcc was
told `-lineinfo`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

LONGEST = 1000
HEAD = "========= "
# What is said of the run, and not of the candidate.
NO_FINDING = re.compile(r"COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY|Target application|$")
SUMMARY = re.compile(rf"^{HEAD}(?:ERROR|RACECHECK) SUMMARY: ", re.MULTILINE)
# `kernel(int*)+0x50 in file.cu:14`, as of CUDA 12; a colon in place of the plus sign; and before, `0x50 in
# /path/file.cu:14:kernel(int*)`. File and line are missing where the compiler wrote none.
AT = r"(?:^|\s)at "
PLACES = (
    re.compile(AT + r"(?P<kernel>[^0\s].*?)[+:]0x[0-9a-f]+(?: in (?P<file>\S+?):(?P<line>\d+))?(?=\s|$)"),
    re.compile(AT + r"0x[0-9a-f]+ in (?:(?P<file>\S+?):(?P<line>\d+):)?(?P<kernel>.+?)(?= \[|$| and )"),
)
THREAD = re.compile(r"by thread (?P<thread>\(\S+\)) in block (?P<block>\(\S+\))")
Text = Annotated[str, msgspec.Meta(max_length=LONGEST)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where: kernel, generated file and its line, and the line of the candidate's own file that it came from, with its
    text; 0 and empty where that is not known."""

    kernel: Text
    file: Text = ""
    line: Number = 0
    own_line: Number = 0
    source_line: Text = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong: what, where, by which thread first, and how often it was said."""

    text: Text
    places: Annotated[list[Place], msgspec.Meta(max_length=10)] = []
    more: Text = ""
    times: Number = 1


def parse(output: str) -> list[Finding]:
    """The findings, in the order of their first; those of equal text and places are one."""
    found: dict[tuple[str, tuple[Place, ...]], Finding] = {}
    for head, rest in _blocks(output):
        places = [place for line in (head, *rest) if (place := _place(line))][:10]
        text = re.split(AT, head)[0].strip().removeprefix("Error: ")[:LONGEST]
        key = text, tuple(places)
        known = found.get(key)
        if known is None:
            more = "; ".join(line.strip() for line in rest if THREAD.search(line) or "Address" in line)[:LONGEST]
            found[key] = Finding(text=text, places=places, more=more)
        else:
            found[key] = msgspec.structs.replace(known, times=known.times + 1)
    return list(found.values())


def is_complete(output: str) -> bool:
    """Whether its output has come to its end, where it sums up: without that, no finding says nothing."""
    return SUMMARY.search(output) is not None


def _blocks(output: str) -> Iterator[tuple[str, list[str]]]:
    """The first line of each finding, and the indented ones below it."""
    head, rest = "", list[str]()
    for line in output.splitlines():
        if not line.startswith(HEAD.rstrip()):
            continue
        said = line.removeprefix(HEAD.rstrip())
        if said.startswith("  "):
            rest.append(said)
            continue
        if head:
            yield head, rest
        said = said.strip()
        head, rest = ("" if NO_FINDING.match(said) else said), []
    if head:
        yield head, rest


def _place(line: str) -> Place | None:
    found = next((match for pattern in PLACES if (match := pattern.search(line))), None)
    if found is None:
        return None
    name = (found["file"] or "").rpartition("/")[2]
    line_number = min(int(found["line"] or 0), 1 << 31)
    return Place(kernel=found["kernel"].strip()[:LONGEST], file=name[:LONGEST], line=line_number)
