"""Which format a file of a pack has, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.catalog.claims import Left
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs import documents, files, generations, tables
from harness.packs.files import Unusable
from harness.packs.sample import Format, Sample

BY_SUFFIX: dict[str, Format] = {
    ".py": documents.source,
    ".md": documents.transcript,
    ".markdown": documents.transcript,
    ".txt": documents.transcript,
    ".json": tables.rows,
    ".jsonl": tables.rows,
    ".ndjson": tables.rows,
}


def samples(source: Path, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """Everything in a file or folder, in order: what can be imported, and what cannot. Raises UsageError."""
    for file in files.walk(source):
        if isinstance(file, Left):
            yield file
            continue
        try:
            if read := _format(file.path.name):
                yield from read(file, wishes, reader)
            else:
                yield file.left(f"no kind of file that is imported; those are {', '.join(BY_SUFFIX)}")
        except Unusable as error:
            yield file.left(str(error))


def is_read(name: str) -> bool:
    """Whether a file of this name is of a kind that is imported."""
    return _format(Path(name).name) is not None


def _format(name: str) -> Format | None:
    if generations.KERNEL.fullmatch(name):
        return generations.kernel
    if name == generations.VERDICTS:
        return generations.verdicts
    return BY_SUFFIX.get(Path(name).suffix.lower())
