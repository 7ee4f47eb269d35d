import csv
import io

import pytest

from harness.records import Status
from harness.reports import rows

CONTRACT = (
    "problem, variant, precision, candidate, status, reason, speedup, speedup_lo, speedup_hi, baseline, candidate_ms, "
    "baseline_ms, error_ratio, sol_fraction, compile_s, wall_s, device"
)
MORE = ["own_share", "claimed_status", "claimed_speedup", "sample", "kernelbench_correct"]


def test_csv_is_held_still(records, golden):
    golden("results.csv", rows.to_csv(records))


def test_columns_are_the_contracts(records):
    assert list(rows.frame(records).columns) == [*CONTRACT.split(", "), *MORE]
    assert rows.to_csv([]) == ",".join([*CONTRACT.split(", "), *MORE]) + "\n"


def test_none_is_empty_even_where_every_record_lacks_it(make):
    fields = {"error_ratio": float("nan"), "claimed_status": "correct"}
    text = rows.to_csv([make("c", status, **fields) for status in Status if status != "passed"])
    for row in csv.DictReader(io.StringIO(text)):
        empty = {column for column, value in row.items() if value == ""}
        assert empty == set(rows.COLUMNS) - set(rows.TEXT_COLUMNS)


def test_numbers_keep_every_digit(make):
    record = make("c", interval=(1 / 3, 0.1 + 0.2, 2 / 3))
    (row,) = csv.DictReader(io.StringIO(rows.to_csv([record])))
    assert [float(row[column]) for column in ("speedup", "speedup_lo", "speedup_hi")] == [1 / 3, 0.1 + 0.2, 2 / 3]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-2+3", "@SUM(A1)"])
def test_a_name_is_no_formula(make, name):
    (row,) = csv.DictReader(io.StringIO(rows.to_csv([make(name, "timeout", reason=name)])))
    assert (row["candidate"], row["reason"]) == (f"'{name}", f"'{name}")
    assert row["problem"] == "attention/sdpa"


def test_a_control_character_ends_no_field(make):
    (row,) = csv.DictReader(io.StringIO(rows.to_csv([make("\t=1\r\x1b", "timeout")])))
    assert row["candidate"] == "\N{REPLACEMENT CHARACTER}=1" + "\N{REPLACEMENT CHARACTER}" * 2


def test_missing_numbers_are_nan_whatever_pandas_would_guess(make):
    frame = rows.frame([make("c", "timeout")])
    assert str(frame["speedup"].dtype) == "float64"
    assert frame["speedup"].isna().all()


def test_names_with_commas_quotes_and_lines_survive(make):
    name = 'a,"b"\nc'
    (row,) = csv.DictReader(io.StringIO(rows.to_csv([make(name)])))
    assert row["candidate"] == name
