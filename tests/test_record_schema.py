"""The published schema is that of the code, and what Assay has published, or accepts, fits it."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from harness.records import SCHEMA_VERSION, Record, Status, encode
from scripts import record_schema

RESULTS = Path(__file__).resolve().parents[1] / "results"
PUBLISHED = sorted(RESULTS.rglob("records.jsonl"))
VALIDATOR = jsonschema.Draft202012Validator(json.loads(record_schema.PAGE.read_text()))
NAMES = {"key": "k", "problem": "toy/scale", "variant": "default", "precision": "float32", "candidate": "mine"}
PLACE = NAMES | {"device": "a card", "baseline": "eager"}
FIGURES = {"speedup_lo": 1.0, "speedup": 1.1, "speedup_hi": 1.2, "candidate_ms": 1.0, "baseline_ms": 1.1}
PASSED = Record(**PLACE, status=Status.PASSED, **FIGURES)
REFUSED = Record(**PLACE, status=Status.INCORRECT, reason="mismatch")


def test_the_schema_is_up_to_date():
    assert record_schema.PAGE.read_text() == record_schema.page(), "run: python scripts/record_schema.py"
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.relative_to(RESULTS).as_posix())
def test_published_records_fit_it(path):
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    faults = [str(fault) for one in records if one["schema"] == SCHEMA_VERSION for fault in VALIDATOR.iter_errors(one)]
    assert not faults, faults[0]


@pytest.mark.parametrize("record", [PASSED, REFUSED], ids=["passed", "refused"])
def test_a_record_fits_it(record):
    VALIDATOR.validate(json.loads(encode(record)))


@pytest.mark.parametrize(
    "record, change",
    [
        (PASSED, {"speedup": None}),
        (PASSED, {"candidate_ms": 0.0}),
        (PASSED, {"status": "incorrect", "reason": "mismatch"}),
        (PASSED, {"status": "fine"}),
        (REFUSED, {"reason": ""}),
        (REFUSED, {"schema": SCHEMA_VERSION + 1}),
        (REFUSED, {"phases_s": []}),
    ],
)
def test_what_is_no_record_for_the_code_is_none_for_the_schema(record, change):
    made = json.loads(encode(record)) | change
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(made, Record)
    assert not VALIDATOR.is_valid(made)
