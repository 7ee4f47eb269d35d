"""Candidates, and the problems that they solve, in a text that a model or a person wrote. The reader parses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.catalog.facts import ReadsTexts, TextFacts
from harness.packs import files
from harness.packs.fences import Block, blocks
from harness.packs.files import Unusable

MOST_BLOCKS = 1000
NO_REFERENCE = "its text holds no problem before it"
NO_LINE = "no line parts its problem from its ModelNew: put Model, get_inputs and get_init_inputs first"


class Attempt(NamedTuple):
    """A candidate in a text; `block` says where. `reference` is the problem before it, or empty: see `why`.

    `number` counts blocks from 1; 0 is the text as a whole.
    """

    block: str
    code: bytes
    reference: bytes = b""
    why: str = NO_REFERENCE
    number: int = 0


class PassedOver(NamedTuple):
    """A block that is no candidate, or not one of those that are wanted."""

    block: str
    reason: str


def code(text: str, reader: ReadsTexts) -> Attempt | None:
    """The text as one candidate, if it is Python, or has no fences; it may be none that works. Raises Unusable."""
    data = files.encoded(text)
    facts = reader.text(data)
    if facts.fault and next(blocks(text), None):
        return None
    return _attempt("", text, facts)


def attempts(text: str, reader: ReadsTexts, every: bool) -> list[Attempt | PassedOver]:
    """The blocks of a text that define `ModelNew`: with `every` each, else the last. A text without fences is a block.

    Blocks before the text's last problem are passed over: prompts begin with an example of another problem. Raises
    Unusable.
    """
    data = files.encoded(text)
    facts = reader.text(data)
    if facts.candidate:
        return [_attempt("", text, facts)]
    found = list(_limited(blocks(text)))
    if not text.strip():
        return [PassedOver("", "it is empty")]
    if not found:
        return [PassedOver("", "it has no fenced block, and is no Python that defines ModelNew")]
    return _chosen(_judged(found, reader), every)


def only_block(text: str) -> Attempt | None:
    """The one block of a text, whatever it holds, if there is exactly one and it is whole. Raises Unusable."""
    found = list(_limited(blocks(text)))
    if len(found) != 1 or found[0].fault:
        return None
    return Attempt(_place(0, found), files.encoded(found[0].text + "\n"), number=1)


def counted(found: list[Attempt | PassedOver], answer: bytes, sample: int | None) -> list[Attempt | PassedOver]:
    """What was found in an answer; where it says which sample it is and holds no candidate, also the answer as it is.

    A sample without a candidate is one that failed: pass@k is over all of them.
    """
    if sample is None or any(isinstance(one, Attempt) for one in found):
        return found
    return [*found, Attempt("", answer)]


def _judged(found: list[Block], reader: ReadsTexts) -> Iterator[Attempt | PassedOver]:
    reference, example = b"", _last_problem(found, reader)
    for number, block in enumerate(found):
        place = _place(number, found)
        if block.fault or not ("ModelNew" in block.text or "get_inputs" in block.text):
            yield PassedOver(place, block.fault or "it does not mention ModelNew")
            continue
        facts = reader.text(block.text.encode())
        if facts.problem and not facts.candidate:
            reference = _stripped(block.text)
        if facts.candidate and number < example:
            yield PassedOver(place, "it comes before the text's last problem: an example, or for another problem")
        elif facts.candidate:
            attempt = _attempt(place, block.text, facts)
            if reference and not facts.problem:
                attempt = attempt._replace(reference=reference, why="")
            yield attempt._replace(number=number + 1)
        else:
            yield PassedOver(place, _why_not(facts))


def _last_problem(found: list[Block], reader: ReadsTexts) -> int:
    """The place of the last problem that is not the same as one before it; -1 if there is none."""
    seen, last = set[bytes](), -1
    for number, block in enumerate(found):
        if not block.fault and "get_inputs" in block.text:
            facts = reader.text(block.text.encode())
            if facts.problem and not facts.candidate and _stripped(block.text) not in seen:
                seen.add(_stripped(block.text))
                last = number
    return last


def _chosen(judged: Iterator[Attempt | PassedOver], every: bool) -> list[Attempt | PassedOver]:
    all_of = list(judged)
    good = [number for number, one in enumerate(all_of) if isinstance(one, Attempt)]
    seen: dict[bytes, str] = {}
    for number in good:
        one = all_of[number]
        if not every and number != good[-1]:
            all_of[number] = PassedOver(one.block, "a later block defines ModelNew: --blocks all takes each")
        elif isinstance(one, Attempt) and one.code in seen:
            all_of[number] = PassedOver(one.block, f"the same as {seen[one.code]}")
        elif isinstance(one, Attempt):
            seen[one.code] = one.block
    return all_of


def _attempt(place: str, text: str, facts: TextFacts) -> Attempt:
    ends = "" if text.endswith("\n") else "\n"
    candidate = (text + ends).encode()
    if not (facts.problem and facts.candidate):
        return Attempt(place, candidate)
    head = "\n".join(text.split("\n")[: facts.reference_lines])
    return Attempt(place, candidate, f"{head}\n".encode(), "") if head else Attempt(place, candidate, why=NO_LINE)


def _why_not(facts: TextFacts) -> str:
    if facts.fault:
        return f"it is no Python: {facts.fault}"
    if facts.problem:
        return "it is the problem"
    return facts.lacks or "it defines no ModelNew"


def _stripped(text: str) -> bytes:
    """A problem as it is kept: spaces at the ends of lines do not make it another."""
    return ("\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n").encode()


def _limited(found: Iterator[Block]) -> Iterator[Block]:
    for number, block in enumerate(found):
        if number == MOST_BLOCKS:
            raise Unusable(f"it has more than {MOST_BLOCKS} blocks")
        yield block


def _place(number: int, found: list[Block]) -> str:
    first, last = found[number].first, found[number].last
    lines = f"lines {first} to {last}" if last >= first else f"nothing behind line {first - 1}"
    return f"block {number + 1} of {len(found)} ({lines})"
