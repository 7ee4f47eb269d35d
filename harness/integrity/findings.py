"""The source screen's findings as text. A finding explains; it never rejects."""

from __future__ import annotations

from collections.abc import Sequence

from harness.catalog.facts import ScreenFinding

MOST_REMARKS = 20


def remarks(findings: Sequence[ScreenFinding]) -> tuple[list[str], list[str]]:
    """The first findings as a record's warnings and notes: `screen: line 7: ...` and `line 7: ...`."""
    warnings = [f"screen: line {one.line}: {one.text}" for one in findings if one.warning]
    notes = [f"line {one.line}: {one.text}" for one in findings if not one.warning]
    return warnings[:MOST_REMARKS], notes[:MOST_REMARKS]


KINDS = {
    "patch": "replaces a part of PyTorch or Python",
    "reach": "accesses things outside its module: interpreter, processes, files, network",
    "fallback": "continues with PyTorch if its own code fails",
    "switch": "sets something for the whole process",
    "library": "a library does part of the work",
    "thread": "starts threads or processes",
    "stream": "uses streams or graphs of its own, or waits for the device",
    "cache": "sets L2 cache aside, or uses tensors' addresses",
}
