"""The files of a run beside its journal: `run.json`, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harness import drafts, records, wording
from harness.config import SECTIONS
from harness.drafts import draft
from harness.errors import UsageError
from harness.records import Record
from harness.store import journal, listed

JOURNAL = "records.jsonl"
MANIFEST = "run.json"
# What `profile` leaves where there is no run.
FOLDERS = {"logs", "profile"}


def check_place(run_dir: Path) -> None:
    """Raises UsageError unless a run may write here: into a new or empty folder, or one that a run has written to. Its
    files take the place of what has their names, and a config of somebody else's may name any folder.

    Hidden files, and the folders FOLDERS, make none of a user's.
    """
    if os.path.lexists(run_dir / JOURNAL) or _has_manifest(run_dir):
        return
    try:
        names = {name for name in os.listdir(run_dir) if not name.startswith(".")}
    except OSError:
        # There is none, or whoever writes there says why not.
        return
    if other := sorted(names - FOLDERS):
        raise UsageError(
            f"{wording.plain(str(run_dir), 300)} holds other things than a run ({wording.plain(other[0], 100)}); "
            "choose a new or an empty folder for this run's files with --out"
        )


def _has_manifest(run_dir: Path) -> bool:
    try:
        return "environment" in manifest(run_dir)
    except UsageError:
        return False


def write_manifest(run_dir: Path, manifest: dict[str, Any]) -> None:
    """Write `run.json`; on disk when this returns. Raises UsageError if it cannot be written."""
    replace(run_dir / MANIFEST, json.dumps(manifest, indent=2, default=str) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder of a run if it is missing. Raises UsageError if it cannot be made, or if it is a link."""
    try:
        drafts.make_folder(path)
    except OSError as error:
        raise journal.unwritable(path, error) from error


def replace(path: Path, text: str) -> None:
    """Write a file of a run whole or not at all: a reader, or a kill at any moment, finds the old one or the new one.

    On disk when this returns. Raises UsageError if it cannot be written; then no draft is left either.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft(path) as place, open(place, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise journal.unwritable(path, error) from error


def parts(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a run so far, from the content of its `run.json`: one for each session that had jobs to do."""
    environment = manifest.get("environment", {})
    if "parts" not in manifest and "sandbox" in environment:
        # Written by a version without parts: one part, as far as the manifest shows.
        mode = manifest.get("config", {}).get("sandbox", "auto")
        whole = {name: environment.get(name) for name in ("commit", "sandbox", "sandbox_missing")}
        times = {name: manifest.get(name) for name in ("started_at", "finished_at")}
        return [{"after_line": 0, "sandbox_mode": mode} | whole | times]
    found: list[dict[str, Any]] = manifest.get("parts", [])
    return found


def read(run_dir: Path) -> tuple[dict[str, Any], list[Record]]:
    """Manifest of a run, and the latest records of the jobs that it lists.

    Raises UsageError if the folder is not a run directory.
    """
    found, latest = as_kept(run_dir)
    # Another version may have written them; they are made printable like new ones.
    return found, [records.presentable(one) for one in latest]


def as_kept(run_dir: Path) -> tuple[dict[str, Any], list[Record]]:
    """As `read`, in half the time, for who shows few of many records: those must be made presentable."""
    try:
        data = journal.contents(run_dir / JOURNAL)
    except OSError as error:
        raise UsageError(f"{run_dir} is not a run directory: {JOURNAL}: {error.strerror}") from error
    try:
        found = manifest(run_dir)
        return found, listed.latest(journal.parse(data)[0], found)
    except UsageError as error:
        raise UsageError(f"{run_dir}: {error}") from error


def manifest(run_dir: Path) -> dict[str, Any]:
    """The content of `run.json`; empty where there is none. Raises UsageError if it cannot be used."""
    place = run_dir / MANIFEST
    try:
        found: Any = json.loads(journal.contents(place))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError, OSError) as error:
        what = error.strerror or error if isinstance(error, OSError) else error
        raise UsageError(f"{place} cannot be read: {wording.plain(str(what), 200)}; {REMEDY}") from error
    if fault := _misshapen(found):
        raise UsageError(f"{place} is not a run's manifest: {fault}; {REMEDY}")
    return {key: value for key, value in found.items() if value is not None or key not in SHAPES}


REMEDY = "move the file away: the records can be shown without it"
SHAPES: dict[str, type] = {"environment": dict, "config": dict, "parts": list, "left_out": list, listed.JOBS: dict}


def _misshapen(manifest: Any) -> str:
    """Which part of a manifest does not have the type that reports rely on; empty if all have."""
    if not isinstance(manifest, dict):
        return f"it is {wording.a(type(manifest).__name__)}"
    if fault := records.newer(manifest.get("schema")):
        return fault
    for key, kind in SHAPES.items():
        if not isinstance(manifest.get(key) or kind(), kind):
            return f"'{key}' is {wording.a(type(manifest[key]).__name__)}"
    command = manifest.get("command") or []
    if not isinstance(command, str | list) or not all(isinstance(word, str) for word in command):
        return "'command' is neither words nor a text"
    config = manifest.get("config") or {}
    for key in SECTIONS:
        if not isinstance(config.get(key) or {}, dict):
            return f"'config.{key}' is {wording.a(type(config[key]).__name__)}"
    for key in ("allow", "provenance.forbid"):
        section, _, last = key.rpartition(".")
        value = (config.get(section) or {} if section else config).get(last)
        if not isinstance(value or [], list):
            return f"'config.{key}' is {wording.a(type(value).__name__)}"
    for job in (manifest.get(listed.JOBS) or {}).values():
        if not isinstance(job, list) or len(job) != 5 or not all(isinstance(word, str) for word in job):
            return f"'{listed.JOBS}' has one that is no five words"
    environment = manifest.get("environment") or {}
    for part in [environment, *(manifest.get("parts") or [])]:
        if not isinstance(part, dict):
            return f"a part of it is {wording.a(type(part).__name__)}"
        if not isinstance(part.get("sandbox_missing") or {}, dict):
            return "'sandbox_missing' is not a mapping"
        if not isinstance(part.get("after_line", 0), int):
            return "'after_line' is not a number"
    return ""
