"""JSON and JSON lines whose rows hold code, under names that the user says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sized
from typing import Any

from harness import wording
from harness.catalog import sources
from harness.catalog.claims import CORRECT, Claim, Left
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs import files, identity, texts, values
from harness.packs.files import File, Unusable
from harness.packs.sample import Sample
from harness.packs.texts import Attempt, PassedOver

MOST_ROWS = 1_000_000
# Fields of a table that a sentence names.
MOST_NAMED = 20


def rows(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """A sample for each row, or for each block of its code with `every_block`."""
    if not wishes.code_field:
        raise Unusable(f"it is a table: name the field that holds code with --code-field{_fields_of(file)}")
    for row, data in _rows(files.decoded(files.contents(file, files.MOST_TABLE_BYTES)), wishes.code_field):
        try:
            if isinstance(data, Unusable):
                raise data
            yield from _samples(file, row, data, wishes, reader)
        except Unusable as error:
            yield file.left(str(error), row)


def _samples(file: File, row: str, data: Any, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    if not isinstance(data, dict):
        raise Unusable("it is not a mapping of names to values")
    number = identity.of_sample(_field(data, wishes.sample_field))
    text, why_none = _text(data, wishes.code_field)
    if why_none and number is None:
        raise Unusable(why_none)
    reference = _reference(data, wishes.reference_field, reader) if wishes.reference_field else None
    known = identity.of_values(_field(data, wishes.level_field), _field(data, wishes.problem_field), wishes)
    claim, name = _claim(data, wishes), _name(_field(data, wishes.name_field))
    whole = texts.code(text, reader)
    found: list[Attempt | PassedOver] = [whole] if whole else texts.attempts(text, reader, wishes.every_block)
    if not any(isinstance(one, Attempt) for one in found) and (only := texts.only_block(text)):
        found = [only]
    for one in texts.counted(found, text.encode(), number):
        if not isinstance(one, Attempt):
            yield file.left(one.reason, row, one.block)
            continue
        yield Sample(
            origin=file.origin(row, one.block),
            identity=known,
            name=name,
            number=number,
            code=one.code,
            reference=reference or one.reference or None,
            no_reference=one.why,
            claim=claim,
        )


def _fields_of(file: File) -> str:
    """The names in a table's first row, as the end of a sentence."""
    first = next((row for _, row in _rows(files.decoded(files.contents(file, files.MOST_TABLE_BYTES)), "")), None)
    if not isinstance(first, dict) or not first:
        return ""
    more = f" and {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    return f"; its rows have {', '.join(wording.plain(name, 60, kept='') for name in [*first][:MOST_NAMED])}{more}"


def _rows(text: str, code_field: str) -> Iterator[tuple[str, Any]]:
    """The rows of a table, each with its place: a list, a mapping of rows, a single row, or one on each line.

    Raises Unusable where there are none, or too many.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise Unusable(f"it is no JSON: {error}") from error
        _check_number(lines)
        yield from ((f"line {number}", _line(line)) for number, line in lines)
        return
    if not isinstance(whole, dict) or _field(whole, code_field) is not None:
        ones = whole if isinstance(whole, list) else [whole]
    elif all(isinstance(one, dict) for one in whole.values()):
        _check_number(whole)
        yield from ((f"key {wording.plain(key, 100, kept='')}", one) for key, one in whole.items())
        return
    else:
        # Its rows may lie beside what is said about them all.
        ones = max((one for one in whole.values() if isinstance(one, list)), key=len, default=[whole])
    _check_number(ones)
    yield from ((f"row {number}", one) for number, one in enumerate(ones, 1))


def _check_number(rows: Sized) -> None:
    if len(rows) > MOST_ROWS:
        raise Unusable(f"it has more than {MOST_ROWS} rows")


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return Unusable(f"it is no JSON: {error}")


def _field(data: dict[str, Any], name: str) -> Any:
    """The value under a name, or below one for `a.b`; None without one."""
    if not name or name in data:
        return data.get(name)
    found: Any = data
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _text(data: dict[str, Any], name: str) -> tuple[str, str]:
    """The text under a name, and why there is none, if so. Raises Unusable for what is no text."""
    value = _field(data, name)
    if values.nothing(value):
        said = value if isinstance(value, str) else "null"
        return value if isinstance(value, str) else "", f"its {name} is {said or 'empty'}"
    if not isinstance(value, str):
        raise Unusable(f"its {name} is {wording.a(type(value).__name__)}, not a text")
    if len(value) > sources.MOST_BYTES:
        raise Unusable(f"its {name} is longer than {sources.MOST_BYTES >> 20} MiB")
    return value.replace("\r\n", "\n").replace("\r", "\n"), ""


def _name(value: Any) -> str:
    """The name of a candidate; samples of one name are counted together. Raises Unusable for what is none."""
    if values.nothing(value):
        return ""
    if not isinstance(value, str | int | float):
        raise Unusable(f"its name is {wording.a(type(value).__name__)}, not a text")
    number = values.whole(value) if isinstance(value, float) else None
    return str(value if number is None else number)[:1000]


def _reference(data: dict[str, Any], name: str, reader: ReadsTexts) -> bytes:
    """A problem's own code, without the fence around it if it has one."""
    text, why_none = _text(data, name)
    if why_none:
        raise Unusable(why_none)
    if found := texts.code(text, reader) or texts.only_block(text):
        return found.code
    raise Unusable("its problem is more than one block")


def _claim(data: dict[str, Any], wishes: PackConfig) -> Claim:
    time = values.positive(_field(data, wishes.time_field))
    over = values.ratio(values.positive(_field(data, wishes.baseline_time_field)), time)
    speedup = values.positive(_field(data, wishes.speedup_field)) or over
    said = _field(data, wishes.status_field)
    words = "" if said is None or isinstance(said, dict | list) else wording.plain(str(said), 100, kept="")
    # Who gives a speedup says that it is one of a right candidate.
    status = values.status(said) or (CORRECT if speedup and not words else "")
    return Claim(status=status, speedup=speedup, time=time, said=words)
