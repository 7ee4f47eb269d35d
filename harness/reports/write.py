"""The report files of a run directory."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.records import Record
from harness.reports import markdown, rows, samples
from harness.store import journal, run_directory
from harness.store.run_directory import replace

REPORTS = ("results.csv", "leaderboard.md", "samples.csv", "report.html")
# Of what the reports were made, and what they are: by it a later session sees that they need not be written again.
SEAL = "reports.sha256"


def write_all(run_dir: Path, records: Sequence[Record], manifest: Mapping[str, Any]) -> None:
    """Write results.csv, leaderboard.md and report.html into `run_dir`, and samples.csv where there are samples;
    `manifest` is the content of run.json.

    SEAL is written last. Raises UsageError if they cannot be written.
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
    replace(run_dir / SEAL, _seal(run_dir))


def are_current(run_dir: Path) -> bool:
    """Whether the reports are what this code wrote of the records and the run.json that are there: nobody has changed
    or removed a file since. Logs and sources, which report.html shows as they were when it was made, do not count."""
    try:
        return journal.contents(run_dir / SEAL) == _seal(run_dir).encode()
    except OSError:
        return False


def _seal(run_dir: Path) -> str:
    """A line for each file that there is, as sha256sum writes and reads them, and one for the code of the reports."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.*")):
        if "__pycache__" not in path.parts:
            code.update(path.read_bytes())
    lines = [f"# reports by {code.hexdigest()}"]
    for name in (run_directory.JOURNAL, run_directory.MANIFEST, *REPORTS):
        with contextlib.suppress(OSError):
            lines.append(f"{hashlib.sha256(journal.contents(run_dir / name)).hexdigest()}  {name}")
    return "\n".join(lines) + "\n"
