"""The files of a run beside its journal: `run.json`, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.records import Record
from harness.store import journal

JOURNAL = "records.jsonl"
MANIFEST = "run.json"


def write_manifest(run_dir: Path, manifest: dict[str, Any]) -> None:
    """Write `run.json`; on disk when this returns."""
    run_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=run_dir, prefix=f".{MANIFEST}", delete=False) as file:
        json.dump(manifest, file, indent=2, default=str)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, run_dir / MANIFEST)


def read(run_dir: Path) -> tuple[dict[str, Any], list[Record]]:
    """Manifest and latest records of a run; raises UsageError where the folder holds no run."""
    try:
        data = (run_dir / JOURNAL).read_bytes()
    except OSError as error:
        raise UsageError(f"{run_dir} holds no run: {JOURNAL}: {error.strerror}") from error
    manifest = json.loads((run_dir / MANIFEST).read_text()) if (run_dir / MANIFEST).exists() else {}
    try:
        return manifest, journal.latest(journal.parse(data)[0])
    except UsageError as error:
        raise UsageError(f"{run_dir}: {error}") from error
