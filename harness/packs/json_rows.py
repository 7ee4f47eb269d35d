"""The rows of a table of JSON, parsed one by one: a table that is parsed as a whole may take 30 times its size."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from harness import wording
from harness.errors import AssayError
from harness.packs.files import Unusable

MOST_ROWS = 1_000_000
# Of one row; a text, a bracket or a comma is a piece, and each value brings one of them along.
MOST_PIECES = 100_000
# A text that never ends is a piece up to the end, so that none is looked at twice.
PIECE = re.compile(r'[^"\[\]{},]*+(?:"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|([\[\]{},]))', re.DOTALL)
KEY = re.compile(r'\s*+("(?:[^"\\]++|\\.)*+")\s*+:\s*+', re.DOTALL)
LINE = re.compile(r"[^\n]*+(?:\n|\Z)")

# Where a value lies in a text: from the first place up to, and without, the second.
Place = tuple[int, int]


class _NotOne(AssayError):
    """A text is not one list or mapping from its begin to its end."""


def rows(text: str, code_field: str) -> Iterator[tuple[str, Any]]:
    """The rows of a table, each with its place: a list, a mapping of rows, a single row, or one on each line.

    A row that cannot be parsed is an Unusable. Raises Unusable where there are none, or too many.
    """
    whole = _stripped(text, 0, len(text))
    try:
        named, ones = _chosen(text, whole, code_field)
    except _NotOne:
        yield from _lines(text)
        return
    for number, (key, place) in enumerate(ones, 1):
        yield f"key {wording.plain(key, 100, kept='')}" if named else f"row {number}", _row(text[slice(*place)])


def parsed(text: str, most: int) -> Any:
    """A text of JSON. Raises Unusable, also for one with more than `most` pieces: each may take 100 bytes."""
    if _number(PIECE.finditer(text), most) > most:
        raise Unusable(f"it has more than {most} values, texts and brackets")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"it is no JSON: {error}") from error


def field(data: dict[str, Any], name: str) -> Any:
    """The value under a name, or below one for `a.b`; None without one."""
    if not name or name in data:
        return data.get(name)
    found: Any = data
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _chosen(text: str, whole: Place, code_field: str) -> tuple[bool, Iterable[tuple[str, Place]]]:
    """Whether rows are named by keys, and the key and place of each. Raises _NotOne or Unusable."""
    if text[whole[0] : whole[0] + 1] == "[":
        _check_number(_parts(text, whole))
        return False, (("", place) for place in _parts(text, whole))
    heads, starts, longest, most = {}, set[str](), whole, -1
    _check_number(_parts(text, whole))
    for key, place in _members(text, whole):
        if key in (code_field, code_field.partition(".")[0]):
            heads[key] = _row(text[slice(*place)])
        starts.add(text[place[0] : place[0] + 1])
        if text[place[0]] == "[" and (number := _number(_parts(text, place), MOST_ROWS)) > most:
            longest, most = place, number
    if field(heads, code_field) is not None or (starts - {"{"} and most < 0):
        return False, [("", whole)]
    if not starts - {"{"}:
        return True, _members(text, whole)
    # Its rows may lie beside what is said about them all.
    _check_number(_parts(text, longest))
    return False, (("", place) for place in _parts(text, longest))


def _lines(text: str) -> Iterator[tuple[str, Any]]:
    """One row on each line. A single line is no table of lines: it is a single value, or what is wrong with it."""
    if _number(_filled(text), 1) < 2:
        yield "row 1", parsed(text, MOST_PIECES)
        return
    _check_number(_filled(text))
    yield from ((f"line {number}", _row(line)) for number, line in _filled(text))


def _filled(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    return ((number, line[0]) for number, line in enumerate(LINE.finditer(text), 1) if line[0].strip())


def _row(text: str) -> Any:
    try:
        return parsed(text, MOST_PIECES)
    except Unusable as error:
        return error


def _members(text: str, whole: Place) -> Iterator[tuple[str, Place]]:
    """The keys of a mapping, and where their values are. Raises _NotOne."""
    for begin, end in _parts(text, whole):
        key = KEY.match(text, begin, end)
        if not key or key.end() == end:
            raise _NotOne
        try:
            yield json.loads(key[1]), (key.end(), end)
        except ValueError as error:
            raise _NotOne from error


def _parts(text: str, whole: Place) -> Iterator[Place]:
    """Where the elements of a list, or the members of a mapping, are. Raises _NotOne."""
    begin, end = whole
    depth, start = 0, begin + 1
    for piece in PIECE.finditer(text, begin, end) if text[begin : begin + 1] in ("[", "{") else ():
        mark, last = piece[1], piece.end() - 1
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        elif mark == "," and depth == 1:
            yield _stripped(text, start, last)
            start = last + 1
        if depth == 0:
            break
    else:
        raise _NotOne
    if last != end - 1 or text[begin] + text[last] not in ("[]", "{}"):
        raise _NotOne
    found = _stripped(text, start, last)
    if found[0] < found[1] or start > begin + 1:
        yield found


def _stripped(text: str, begin: int, end: int) -> Place:
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


def _number(found: Iterable[object], most: int) -> int:
    """How many there are, counted up to one more than so many."""
    return sum(1 for _ in itertools.islice(found, most + 1))


def _check_number(found: Iterable[object]) -> None:
    if _number(found, MOST_ROWS) > MOST_ROWS:
        raise Unusable(f"it has more than {MOST_ROWS} rows")
