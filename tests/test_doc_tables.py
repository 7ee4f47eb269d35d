"""Tables of the documents name what the code has: nothing is left out, and nothing stays when it is gone."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.compile.ways.order import WAYS
from harness.records import Status
from harness.reports.rows import COLUMNS
from harness.rewards.rewards import SCHEMES
from harness.sandbox.enforcement import LAYERS
from harness.serve.requests import EvaluateRequest

DOCS = Path(__file__).parents[1] / "docs"
TABLES = {
    "evaluation.md / ## Statuses": Status,
    "threat-model.md / ## The layers": LAYERS,
    "compile.md / ## Ways to build": [way.name for way in WAYS],
    "rewards.md / ## Schemes": SCHEMES,
    "serve.md / ## A request": EvaluateRequest.__struct_fields__,
    "results.md / ## The columns of `results.csv`": COLUMNS,
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_a_row_for_each_in_order(table: str):
    rows: Iterable[str] = TABLES[table]
    file, _, heading = table.partition(" / ")
    section = (DOCS / file).read_text().partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(rows)
