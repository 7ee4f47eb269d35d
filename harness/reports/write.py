"""The report files of a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.records import Record
from harness.reports import markdown, rows, samples
from harness.store.run_directory import replace


def write_all(run_dir: Path, records: Sequence[Record], manifest: Mapping[str, Any]) -> None:
    """Write results.csv, leaderboard.md and report.html into `run_dir`, and samples.csv where there are samples;
    `manifest` is the content of run.json.

    Raises UsageError if they cannot be written.
    """
    replace(run_dir / "results.csv", rows.to_csv(records))
    replace(run_dir / "leaderboard.md", markdown.leaderboard(records, manifest))
    if samples.series(records):
        replace(run_dir / "samples.csv", samples.to_csv(records))
    else:
        # Of records that `--fresh` has deleted.
        (run_dir / "samples.csv").unlink(missing_ok=True)
    # Here, because it loads matplotlib, which takes as long as a short run.
    from harness.reports.html import page

    replace(run_dir / "report.html", page.report(records, manifest, run_dir))
