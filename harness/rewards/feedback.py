"""A record as a text for the model that wrote the candidate: bounded, and without what a candidate must not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from harness import wording
from harness.catalog.facts import Diagnostic
from harness.errors import BadValue
from harness.records import Record, Status
from harness.rewards.rewards import is_no_word

MOST_WARNINGS, LONGEST_WARNING = 4, 300
# Lines of the candidate's source above and below the one at fault.
AROUND = 2
NUMBER = r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf)"
# As the oracle tells of one element: its answer, and the right one. From both, and the error, the other is known.
ELEMENT = re.compile(rf"(?P<at>at \[[\d, ]*\])?(?:: )?{NUMBER} in place of {NUMBER}")
# And, behind a leaf's path, of one that is a number or text by itself. Another kind or form (oracle/structure.py) is no
# value.
SCALAR = re.compile(r"(?:(?<=\boutput: )|(?<=\]: ))expected (?!an? |None, got |(?:shape|layout|device|dtype) )[^\n]*")
OUR_PLACE = re.compile(r"harness/[\w/]+\.py:\d+(?: \(for (?P<file>[^,]*), of which no line called it\))?")
TRACEBACK = re.compile(r"^\s*(?:Traceback \(most recent call last\)|File \".*\", line \d+).*$\n?", re.MULTILINE)
# Shorter ones (0, 1, 64) say nothing, and are in every text.
TELLING = 4


def feedback(record: Record, limit: int = 2048, *, source: str = "") -> str:
    """What the author of a candidate should read of its record, at most `limit` characters, cut in the middle.

    Status and reason, the compiler's first error or the place in its file, how an output is wrong, times beside the
    baseline's and the device's floor, warnings. With the candidate's `source`, the lines around the place are quoted.
    Nothing of expected outputs or seeds is in it, nor a place in the harness's own code. Raises BadValue for a negative
    limit.
    """
    if limit < 0:
        raise BadValue(f"the limit of a feedback must not be negative, not {limit}")
    text = _without_secrets("\n".join(part for part in _parts(record, source) if part), record)
    return cut(wording.plain(text, len(text) + 1), limit)


def cut(text: str, limit: int) -> str:
    """`text` with its middle left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit} characters or more are left out ...]\n"
    if limit < 2 * len(mark):
        return text[:limit]
    head = (limit - len(mark)) * 2 // 3
    tail = limit - len(mark) - head
    return text[:head] + mark + text[len(text) - tail :]


def _parts(record: Record, source: str) -> Iterator[str]:
    yield f"{record.status}: {record.reason}" if record.reason else str(record.status)
    if record.status is Status.PASSED:
        yield from _figures(record)
    elif record.status is Status.HARNESS_ERROR:
        yield "The harness failed, not this candidate. Submit it again."
    elif is_no_word(record):
        yield "This is not the candidate's fault: the problem, or this machine, does not allow to judge it."
        yield _said(record)
    elif record.status is Status.COMPILE_ERROR and (first := _first_error(record)):
        yield from _error(record, first, source)
    else:
        yield _said(record)
        yield _mismatch(record)
        yield _quoted(source, record.evidence.get("line"))
    warnings = [f"warning: {wording.plain(text, LONGEST_WARNING)}" for text in record.warnings[:MOST_WARNINGS]]
    yield "\n".join(warnings)


def _figures(record: Record) -> Iterator[str]:
    yield (
        f"speedup {record.speedup:.3g} over the baseline ({record.baseline}), 95 % interval "
        f"{record.speedup_lo:.3g} to {record.speedup_hi:.3g}"
    )
    yield f"time of one call: {record.candidate_ms:.4g} ms, the baseline's {record.baseline_ms:.4g} ms"
    floor_us = record.timing.floor_us if record.timing else None
    if floor_us and record.timing:
        bound = f", bound by {record.timing.floor_bound}" if record.timing.floor_bound else ""
        share = f"; this candidate reaches {record.sol_fraction:.0%} of that" if record.sol_fraction else ""
        yield f"the least that this device could take: {floor_us / 1e3:.4g} ms{bound}{share}"
    if record.provenance is not None:
        yield f"share of the time: {record.provenance.own_words} {record.provenance.own_share:.0%}"


def _said(record: Record) -> str:
    if record.reason.startswith("mismatch:scalar"):
        # The sentence consists of the right value and the wrong one.
        return "a number in the output is wrong"
    return OUR_PLACE.sub(lambda found: found["file"] or "the runtime", TRACEBACK.sub("", record.message))


def _mismatch(record: Record) -> str:
    """How much of an output is wrong, and how far off it is."""
    if record.status is not Status.INCORRECT:
        return ""
    said = []
    shape, share = record.evidence.get("shape"), record.evidence.get("share_wrong")
    if isinstance(shape, list):
        said.append(f"shape {shape}")
    if isinstance(share, int | float):
        said.append(f"{share:.4%} of the elements wrong")
    for name in ("first", "worst"):
        element = record.evidence.get(name)
        if isinstance(element, dict) and element.get("index"):
            said.append(f"the {name} wrong one at {element['index']}")
    if record.error_ratio is not None:
        said.append(f"error {record.error_ratio:.3g} times the reference's own")
    return "; ".join(said)


def _first_error(record: Record) -> Diagnostic | None:
    try:
        # An untrusted process wrote them.
        found = msgspec.convert(record.evidence.get("errors", []), list[Diagnostic])
    except msgspec.ValidationError:
        return None
    return found[0] if found else None


def _error(record: Record, first: Diagnostic, source: str) -> Iterator[str]:
    where = f"line {first.line}" if first.line else f"{first.generated_file}:{first.generated_line}"
    yield f"the compiler's first error, {where}: {first.text}"
    yield _quoted(source, first.line) or first.source_line
    if first.hint:
        yield f"hint: {first.hint}"


def _quoted(source: str, line: Any) -> str:
    lines = wording.lines(source)
    if not isinstance(line, int) or not 0 < line <= len(lines):
        return ""
    shown = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
    return "\n".join(f"{'>' if number == line else ' '}{number:5d} | {lines[number - 1]}" for number in shown)


def _without_secrets(text: str, record: Record) -> str:
    """The text without right values of single elements, wherever it quotes them."""
    text = SCALAR.sub("a number in it is wrong", text)
    text = ELEMENT.sub(lambda found: found["at"] or "this element", text)
    for number in {form for value in _expected(record.evidence) for form in _forms(value)}:
        # Looked for first: a build may have made up thousands of them.
        if len(number) >= TELLING and number in text:
            text = re.sub(rf"(?<![\w.]){re.escape(number)}(?![\w])", "[not told]", text)
    return text


def _expected(evidence: Any) -> Iterator[float]:
    """The numbers that an evidence holds as expected ones, at any depth."""
    if isinstance(evidence, dict):
        for key, value in evidence.items():
            if key == "expected" and isinstance(value, int | float):
                yield value
            yield from _expected(value)
    elif isinstance(evidence, list):
        for value in evidence:
            yield from _expected(value)


def _forms(value: float) -> tuple[str, ...]:
    return (f"{value:.6g}", f"{value:.9g}", repr(value), str(value))
