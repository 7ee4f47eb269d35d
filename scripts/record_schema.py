"""Write docs/record.schema.json: what a line of records.jsonl is, as JSON Schema, from harness/records.py.

python scripts/record_schema.py
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.records import SCHEMA_VERSION, Record, Status  # noqa: E402

PAGE = ROOT / "docs/record.schema.json"
INTERVAL = ("speedup_lo", "speedup", "speedup_hi")


def schema() -> dict[str, Any]:
    """The schema of a record: its types, and what `Record` checks beside them (which schemas can say)."""
    made = msgspec.json.schema(Record)
    for definition in made["$defs"].values():
        definition["description"] = inspect.cleandoc(definition["description"])
    record = made["$defs"]["Record"]
    record["properties"]["schema"]["maximum"] = SCHEMA_VERSION
    positive = {"type": "number", "exclusiveMinimum": 0}
    record["if"] = {"properties": {"status": {"const": str(Status.PASSED)}}}
    figures = (*INTERVAL, "candidate_ms", "baseline_ms")
    record["then"] = {"required": list(figures), "properties": dict.fromkeys(figures, positive)}
    none = {name: {"type": "null"} for name in INTERVAL}
    record["else"] = {"required": ["reason"], "properties": none | {"reason": {"minLength": 1}}}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Assay's record, schema {SCHEMA_VERSION}",
    }
    return head | made


def page() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
