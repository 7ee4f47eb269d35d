"""What a look at a source found. A finding explains; it never rejects."""

from __future__ import annotations

from collections.abc import Sequence

from harness.catalog.facts import ScreenFinding

MOST_REMARKS = 20


def remarks(findings: Sequence[ScreenFinding]) -> tuple[list[str], list[str]]:
    """Findings as a record's warnings and notes: `screen: line 7: ...` and `line 7: ...`, the first ones of each."""
    warnings = [f"screen: line {one.line}: {one.text}" for one in findings if one.warning]
    notes = [f"line {one.line}: {one.text}" for one in findings if not one.warning]
    return warnings[:MOST_REMARKS], notes[:MOST_REMARKS]


KINDS = {
    "patch": "replaces something of PyTorch's or Python's own",
    "reach": "reaches out of its own module: interpreter, processes, files, network",
    "fallback": "goes on with PyTorch where its own code fails",
    "switch": "sets something for the whole process",
    "library": "leaves work to a library",
    "thread": "starts threads or processes",
    "stream": "uses streams or graphs of its own, or waits for the device",
    "cache": "touches the L2 cache's set-aside, or tensors' addresses",
}
