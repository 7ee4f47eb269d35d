"""Records as a table: the columns of results.csv, in their fixed order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness import wording
from harness.records import Record
from harness.reports.groups import grouped

if TYPE_CHECKING:
    import pandas as pd

TEXT_COLUMNS = (
    "problem",
    "variant",
    "precision",
    "candidate",
    "status",
    "reason",
    "baseline",
    "device",
    "claimed_status",
)
WHOLE_COLUMNS = ("sample",)
TRUTH_COLUMNS = ("kernelbench_correct",)
FORMULA_STARTS = ("=", "+", "-", "@")
COLUMNS = (
    "problem",
    "variant",
    "precision",
    "candidate",
    "status",
    "reason",
    "speedup",
    "speedup_lo",
    "speedup_hi",
    "baseline",
    "candidate_ms",
    "baseline_ms",
    "error_ratio",
    "sol_fraction",
    "compile_s",
    "wall_s",
    "device",
    # After the first columns, whose order must not change.
    "own_share",
    "claimed_status",
    "claimed_speedup",
    "sample",
    "kernelbench_correct",
)


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """One row per record, in report order; missing numbers are NaN, missing text is empty.

    Speedups are ratios; `_ms` and `_s` columns are milliseconds and seconds.
    """
    # Imported here because it takes half a second.
    import pandas as pd

    ordered = [entry.record for group in grouped(records) for entry in group.entries]
    return pd.DataFrame({column: _series(ordered, column) for column in COLUMNS}, columns=list(COLUMNS))


def to_csv(records: Sequence[Record]) -> str:
    """The text of results.csv: all digits, an empty field for a missing value, and no text that is a formula."""
    text: str = frame(records).to_csv(index=False, lineterminator="\n")
    return text


def inert(text: str) -> str:
    """A text that a spreadsheet reads as text: with an apostrophe in front if it would read a formula."""
    words = wording.plain(text, 1000, kept="\n")
    return f"'{words}" if words.startswith(FORMULA_STARTS) else words


def _series(records: list[Record], column: str) -> pd.Series:
    import pandas as pd

    values = [getattr(record, column) for record in records]
    if column in TEXT_COLUMNS:
        return pd.Series([inert(str(value)) for value in values], dtype="str")
    if column in WHOLE_COLUMNS:
        return pd.Series(values, dtype="Int64")
    if column in TRUTH_COLUMNS:
        return pd.Series(values, dtype="boolean")
    # An infinite or undefined error would be written as "inf"; the journal cannot hold it either.
    return pd.Series([value if _is_value(value) else math.nan for value in values], dtype="float64")


def _is_value(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
