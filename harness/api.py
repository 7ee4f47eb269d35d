"""Assay from Python: evaluate candidates, read runs, and make rewards and feedback of records (docs/api.md).

These names are stable; what else is in the package may change from version to version.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.config import Config
from harness.errors import AssayError, UsageError
from harness.evaluator.evaluator import Evaluator, evaluate
from harness.records import Record, Status
from harness.rewards.feedback import feedback
from harness.rewards.rewards import SCHEMES, reward
from harness.store import run_directory

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AssayError",
    "Config",
    "Evaluator",
    "Record",
    "SCHEMES",
    "Status",
    "UsageError",
    "evaluate",
    "feedback",
    "load",
    "reward",
]


def load(run: str | Path) -> pd.DataFrame:
    """The results of a run directory, a row a record, with the columns of results.csv (docs/results.md).

    Missing numbers are NaN, missing texts empty. Raises UsageError if the folder is no run directory.
    """
    from harness.reports import rows

    return rows.frame(run_directory.read(Path(run))[1])
