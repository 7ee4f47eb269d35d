"""A run as JUnit XML, which CI systems read: a suite for each problem at a size, a case for each candidate."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from harness import wording
from harness.records import Record, Status, is_no_word
from harness.store import listed

LONGEST = 4000


def xml(records: Sequence[Record], manifest: Mapping[str, Any]) -> str:
    """The document. Speedup, interval and time are properties of a passed candidate's case.

    A job that the run (`manifest`: its run.json) has not come to is an error, so that no gate takes it for done.
    """
    suites = ElementTree.Element("testsuites", name="assay")
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[f"{record.problem} {record.variant} {record.precision}"].append(record)
    for name, group in groups.items():
        suite = ElementTree.SubElement(suites, "testsuite", name=wording.plain(name, LONGEST, kept=""))
        for record in group:
            _case(suite, record)
        _count(suite)
    for problem, variant, precision, candidate, _ in listed.without_record(records, manifest):
        suite = ElementTree.SubElement(suites, "testsuite", name=_plain(f"{problem} {variant} {precision}"))
        case = ElementTree.SubElement(suite, "testcase", classname=_plain(problem), name=_plain(candidate), time="0")
        ElementTree.SubElement(case, "error", type="no_record", message="the run ended before this job did")
        _count(suite)
    _count(suites)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, record: Record) -> None:
    attributes = {"classname": record.problem, "name": record.candidate, "time": f"{record.wall_s or 0.0:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", {key: _plain(text) for key, text in attributes.items()})
    if record.status is not Status.PASSED:
        kind = _kind(record)
        reason = f"{record.status} {record.reason}".strip()
        found = ElementTree.SubElement(case, kind, type=_plain(reason), message=_plain(record.message))
        found.text = _plain(f"{reason}: {record.message}" if record.message else reason)
        return
    properties = ElementTree.SubElement(case, "properties")
    for name in ("speedup", "speedup_lo", "speedup_hi", "candidate_ms", "baseline_ms", "error_ratio"):
        value = getattr(record, name)
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=f"{value:.6g}")
    if record.warnings:
        ElementTree.SubElement(case, "system-out").text = "\n".join(_plain(one) for one in record.warnings)


def _kind(record: Record) -> str:
    """Whose doing it is: the candidate's (failure), the machine's (skipped), the problem's or the harness's (error)."""
    if not is_no_word(record):
        return "failure"
    return "skipped" if record.status is Status.UNSUPPORTED else "error"


def _plain(text: str) -> str:
    """Text that XML can hold: no control characters, no halves of surrogate pairs. Nor does it name a file to publish,
    as `[[ATTACHMENT|path]]` does for Jenkins and GitLab."""
    return re.sub(r"\[(?=\[)", "[ ", wording.plain(text, LONGEST, kept="\n"))


def _count(element: ElementTree.Element) -> None:
    """The numbers that readers of JUnit show before anything else."""
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(len(list(element.iter(tag)))))
