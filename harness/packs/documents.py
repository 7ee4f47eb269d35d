"""Files that each hold one text: a candidate's source, or what a model answered."""

from __future__ import annotations

from collections.abc import Iterator

from harness.catalog.claims import Left
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs import files, identity, texts
from harness.packs.files import File, Unusable
from harness.packs.sample import Sample
from harness.packs.texts import Attempt, PassedOver


def source(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """A Python file: as it is, whether or not it works, unless it holds fenced blocks instead of Python."""
    data = files.contents(file)
    try:
        text = files.decoded(data)
        whole = texts.code(text, reader)
    except Unusable:
        # Python may know its encoding.
        whole, text = Attempt("", data), ""
    if whole:
        yield _sample(file, whole._replace(code=data), wishes, numbered=False)
        return
    found = texts.attempts(text, reader, wishes.every_block)
    if not any(isinstance(one, Attempt) for one in found):
        found = [texts.only_block(text) or Attempt("", data)]
    yield from _all(file, found, wishes)


def transcript(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """What a model answered: the last whole block that defines `ModelNew`, or each with `every_block`."""
    data = files.contents(file)
    found = texts.attempts(files.decoded(data), reader, wishes.every_block)
    yield from _all(file, texts.counted(found, data, identity.named(file.parts)[1]), wishes)


def _all(file: File, found: list[Attempt | PassedOver], wishes: PackConfig) -> Iterator[Sample | Left]:
    for one in found:
        if isinstance(one, Attempt):
            yield _sample(file, one, wishes, numbered=wishes.every_block)
        else:
            yield file.left(one.reason, block=one.block)


def _sample(file: File, one: Attempt, wishes: PackConfig, numbered: bool) -> Sample:
    name, number = identity.named(file.parts)
    if numbered and one.number:
        # Attempts of one conversation are no samples of a problem.
        which = "" if number is None else f"sample_{number}"
        name, number = "-".join(filter(None, (name, which, f"block_{one.number}"))), None
    return Sample(
        origin=file.origin(block=one.block),
        identity=identity.of_names(file.parts, wishes),
        name=name,
        number=number,
        code=one.code,
        reference=one.reference or None,
        no_reference=one.why,
    )
