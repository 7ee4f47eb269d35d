"""A record as a text for the model that wrote the candidate: bounded, and without what a candidate must not know."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterator
from itertools import islice
from typing import Any

import msgspec

from harness import wording
from harness.catalog.facts import Diagnostic
from harness.errors import BadValue
from harness.records import Record, Status, is_no_word

MOST_WARNINGS, LONGEST_WARNING = 4, 300
# Lines of the candidate's source above and below the one at fault.
AROUND = 2
# What candidates write is cut before it is looked at. A record's own texts are shorter than the second.
LONGEST_SOURCE, LONGEST_PART, LONGEST_LINE = 1 << 18, 5000, 300
# Each pattern below takes time in proportion to the text, whatever that repeats: no letter is read again but for a
# bounded number of times.
GOT = r"-?(?:\d[\d.]{0,40}+(?:e[+-]?\d{1,9}+)?+|nan|inf)"
RIGHT = r"-?(?:\d[\d.]*+(?:e[+-]?\d++)?+|nan|inf)"
# As the oracle tells of one element: its answer, and the right one. From both, and the error, the other is known.
ELEMENT = re.compile(rf"(?P<at>at \[[\d, ]*+\])?(?:: )?{GOT} in place of {RIGHT}")
# And, behind a leaf's path, of one that is a number or text by itself. Another kind or form (oracle/structure.py) is no
# value.
SCALAR = re.compile(r"(?:(?<=\boutput: )|(?<=\]: ))expected (?!an? |None, got |(?:shape|layout|device|dtype) )[^\n]*")
OUR_PLACE = re.compile(
    r"harness/[\w/]{1,200}+\.py:\d++(?: \(for (?P<file>[^,]{0,500}+), of which no line called it\))?"
)
TRACEBACK = re.compile(r"^[^\S\n]*+(?:Traceback \(most recent call last\)|File \".*\", line \d+).*$\n?", re.MULTILINE)
# What may be a number, from where one may begin.
WORD = re.compile(r"(?<![\w.])-?\w[\w.]*+(?:(?<=e)[+-]\d++)?+")
NUMBER_LETTERS = "0123456789.e+-"
# Shorter ones (0, 1, 64) say nothing, and are in every text. No number of a tensor is longer.
TELLING, LONGEST_NUMBER = 4, 30
# Of an evidence. The oracle's has a few; a build may make up thousands.
MOST_HIDDEN, MOST_LOOKED_AT = 100, 5000


def feedback(record: Record, limit: int = 2048, *, source: str = "") -> str:
    """What the author of a candidate should read of its record, at most `limit` characters, cut in the middle.

    Status and reason, the compiler's first error or the place in its file, how an output is wrong, times beside the
    baseline's and the device's floor, warnings. With the candidate's `source`, the lines around the place are quoted.
    Nothing of expected outputs or seeds is in it, nor a place in the harness's own code. Raises BadValue for a negative
    limit.
    """
    if limit < 0:
        raise BadValue(f"the limit of a feedback must not be negative, not {limit}")
    hidden = frozenset(_hidden(record.evidence))
    parts = [_without_secrets(part, hidden) for part in _parts(record, source)]
    for text in record.warnings[:MOST_WARNINGS]:
        # Cut last: of half a sentence it is not known what it tells.
        parts.append(f"warning: {_beginning(_without_secrets(text, hidden), LONGEST_WARNING)}")
    text = "\n".join(part for part in parts if part)
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
    message = TRACEBACK.sub("", _beginning(record.message, LONGEST_PART))
    return OUR_PLACE.sub(lambda found: found["file"] or "the runtime", message)


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
    yield _quoted(source, first.line, first.source_line) or first.source_line
    if first.hint:
        yield f"hint: {first.hint}"


def _quoted(source: str, line: Any, at_fault: str = "") -> str:
    """The lines around that one, each at most LONGEST_LINE characters: of a longer one those around `at_fault`."""
    lines = wording.lines(source[:LONGEST_SOURCE])
    if not isinstance(line, int) or not 0 < line <= len(lines):
        return ""
    shown = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
    return "\n".join(
        f"{'>' if number == line else ' '}{number:5d} | {_part(lines[number - 1], at_fault)}" for number in shown
    )


def _part(line: str, at_fault: str) -> str:
    """Of a long line the part that begins at most half of LONGEST_LINE before `at_fault`, or its beginning."""
    if len(line) <= LONGEST_LINE:
        return line
    wanted = at_fault.strip()[: LONGEST_LINE // 2]
    start = line.find(wanted) - LONGEST_LINE // 2 if wanted else 0
    if start <= 0:
        return _beginning(line, LONGEST_LINE)
    return _beginning("…" + line[start : start + LONGEST_LINE].lstrip(NUMBER_LETTERS), LONGEST_LINE)


def _beginning(text: str, longest: int) -> str:
    """At most so many characters of a text, without a part of a number, by which the whole one would not be known."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip(NUMBER_LETTERS)}…"


def _without_secrets(text: str, hidden: Container[str]) -> str:
    """The beginning of a text, without right values of single elements, wherever it quotes them."""
    text = SCALAR.sub("a number in it is wrong", _beginning(text, LONGEST_PART))
    text = ELEMENT.sub(lambda found: found["at"] or "this element", text)
    return WORD.sub(lambda found: _untold(found[0], hidden), text) if hidden else text


def _untold(word: str, hidden: Container[str]) -> str:
    """The word, without a hidden number that it is, or that it begins with up to a point or sign."""
    for end in range(min(len(word), LONGEST_NUMBER), TELLING - 1, -1):
        if word[:end] in hidden and not (word[end : end + 1].isalnum() or word[end : end + 1] == "_"):
            return f"[not told]{word[end:]}"
    return word


def _hidden(evidence: Any) -> Iterator[str]:
    """How the numbers that an evidence holds as expected ones may be written; the outer ones first."""
    for value in islice(_expected(evidence), MOST_HIDDEN):
        yield from (form for form in _forms(value) if TELLING <= len(form) <= LONGEST_NUMBER)


def _expected(evidence: Any) -> Iterator[float]:
    left = deque([evidence])
    for _ in range(MOST_LOOKED_AT):
        if not left:
            return
        one = left.popleft()
        if isinstance(one, dict):
            # As large as a tensor's: the text of a longer integer takes long, or is refused.
            if isinstance(value := one.get("expected"), int | float) and abs(value) < 1e300:
                yield value
            left.extend(islice(one.values(), MOST_LOOKED_AT))
        elif isinstance(one, list):
            left.extend(one[:MOST_LOOKED_AT])


def _forms(value: float) -> tuple[str, ...]:
    return (f"{value:.6g}", f"{value:.9g}", repr(value), str(value))
