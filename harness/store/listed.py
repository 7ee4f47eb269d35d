"""The jobs of a run, as its run.json lists them: those of its last call, and of earlier ones that the last one did not
ask for. Which records are theirs, and which of them have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness import records
from harness.records import Record
from harness.store import journal

# In run.json, by the key of each job: problem, variant, precision, candidate and the SHA-256 of its files.
JOBS = "jobs"


def latest(found: Iterable[Record], manifest: Mapping[str, Any]) -> list[Record]:
    """What reports show: the last record of each job that is listed, or of all jobs where none are.

    A candidate that is gone, or is called otherwise, has no verdict any more.
    """
    listed = manifest.get(JOBS)
    return [one for one in journal.latest(found) if listed is None or one.key in listed]


def content(record: Record, manifest: Mapping[str, Any]) -> str:
    """The digest of the candidate that the record is of; empty where the run does not say."""
    job = (manifest.get(JOBS) or {}).get(record.key)
    return str(job[-1]) if job else ""


def without_record(found: Iterable[Record], manifest: Mapping[str, Any]) -> list[Sequence[str]]:
    """What run.json says of each job that has no record."""
    known = {record.key for record in found}
    return [job for key, job in (manifest.get(JOBS) or {}).items() if key not in known]


def unfinished(found: Iterable[Record], manifest: Mapping[str, Any]) -> str:
    """What a reader should know of a run that did not come to its end; empty if it did."""
    if left := len(without_record(found, manifest)):
        return f"the run has not finished: {left} of {len(manifest[JOBS])} jobs have no record"
    is_open = bool(manifest.get("started_at")) and not manifest.get("finished_at") and JOBS not in manifest
    return "the run has not finished" if is_open else ""


def unprotected(found: Sequence[Record], parts: Sequence[Mapping[str, Any]]) -> set[str]:
    """Keys of jobs whose newest record is of a part of the run that lacked layers of the sandbox, or of no part.

    A record that was brought back (Journal.bring_back) is of the part that first wrote it.
    """
    # Line and content of the newest record of each key, and the newest key of each cell.
    newest: dict[str, tuple[int, bytes]] = {}
    shown: dict[tuple[str, str], str] = {}
    for line, record in enumerate(found):
        cell, content = (record.title, record.device), records.encode(record)
        is_brought_back = shown.get(cell) != record.key and newest.get(record.key, (0, b""))[1] == content
        newest[record.key] = newest[record.key] if is_brought_back else (line, content)
        shown[cell] = record.key
    return {key for key, (line, _) in newest.items() if not _is_protected(line, parts)}


def _is_protected(line: int, parts: Sequence[Mapping[str, Any]]) -> bool:
    before = [part for part in parts if part.get("after_line", 0) <= line]
    return bool(before and before[-1].get("sandbox") and not before[-1].get("sandbox_missing"))
