"""JSON and JSON lines whose rows hold code, under names that the user says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness import wording
from harness.catalog import sources
from harness.catalog.claims import CORRECT, Claim, Left
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs import files, identity, json_rows, texts, values
from harness.packs.files import File, Unusable
from harness.packs.json_rows import field
from harness.packs.sample import Sample
from harness.packs.texts import Attempt, PassedOver

# Fields of a table that a sentence names.
MOST_NAMED = 20


def rows(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """A sample for each row, or for each block of its code with `every_block`."""
    if not wishes.code_field:
        raise Unusable(f"it is a table: name the field that holds code with --code-field{_fields_of(file)}")
    for row, data in json_rows.rows(files.decoded(files.contents(file, files.MOST_TABLE_BYTES)), wishes.code_field):
        try:
            if isinstance(data, Unusable):
                raise data
            yield from _samples(file, row, data, wishes, reader)
        except Unusable as error:
            yield file.left(str(error), row)


def _samples(file: File, row: str, data: Any, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    if not isinstance(data, dict):
        raise Unusable("it is not a mapping of names to values")
    number = identity.of_sample(field(data, wishes.sample_field))
    text, why_none = _text(data, wishes.code_field)
    if why_none and number is None:
        raise Unusable(why_none)
    reference = _reference(data, wishes.reference_field, reader) if wishes.reference_field else None
    known = identity.of_values(field(data, wishes.level_field), field(data, wishes.problem_field), wishes)
    claim, name = _claim(data, wishes), _name(field(data, wishes.name_field))
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
    first = next(
        (row for _, row in json_rows.rows(files.decoded(files.contents(file, files.MOST_TABLE_BYTES)), "")), None
    )
    if not isinstance(first, dict) or not first:
        return ""
    more = f" and {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    return f"; its rows have {', '.join(wording.plain(name, 60, kept='') for name in [*first][:MOST_NAMED])}{more}"


def _text(data: dict[str, Any], name: str) -> tuple[str, str]:
    """The text under a name, and why there is none, if so. Raises Unusable for what is no text."""
    value = field(data, name)
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
    time = values.positive(field(data, wishes.time_field))
    over = values.ratio(values.positive(field(data, wishes.baseline_time_field)), time)
    speedup = values.positive(field(data, wishes.speedup_field)) or over
    said = field(data, wishes.status_field)
    words = "" if said is None or isinstance(said, dict | list) else wording.plain(str(said), 100, kept="")
    # Who gives a speedup says that it is one of a right candidate.
    status = values.status(said) or (CORRECT if speedup and not words else "")
    return Claim(status=status, speedup=speedup, time=time, said=words)
