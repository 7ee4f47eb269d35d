"""The report files of a run directory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.records import Record
from harness.reports import markdown, rows


def write_all(run_dir: Path, records: Sequence[Record], manifest: Mapping[str, Any]) -> None:
    """Write results.csv and leaderboard.md into `run_dir`, which exists; `manifest` is the content of run.json.

    A reader, or a kill at any moment, meets the old file or the new one, never half of one.
    """
    _replace(run_dir / "results.csv", rows.to_csv(records))
    _replace(run_dir / "leaderboard.md", markdown.leaderboard(records, manifest))


def _replace(path: Path, text: str) -> None:
    # Not tempfile, whose files only their owner may read: results are for others too.
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
