"""Rows of JSON and JSON lines, under names that the user says."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.catalog.claims import Claim
from harness.packs import json_rows, values
from tests.packs.conftest import MODEL, NEW

FIELDS = {"code_field": "code", "problem_field": "task", "level_field": "level", "reference_field": "ref"}
ROW = {"level": 1, "task": 19, "code": NEW, "ref": MODEL}


@pytest.fixture
def table(tmp_path):
    def write(content, name: str = "pack.json"):
        place = tmp_path / name
        place.write_text(content if isinstance(content, str) else json.dumps(content))
        return place

    return write


@pytest.mark.parametrize("start", [" " * 30, "\n" * 30, "#" * 30 + "\n"])
def test_code_may_begin_with_nothing_much(table, read, start):
    (sample,), _ = read(table([ROW | {"code": start + NEW}]), **FIELDS)
    assert sample.code.decode().strip().endswith(NEW.strip())


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ([ROW], "row 1"),
        (ROW | {"tags": [1, 2]}, "row 1"),
        ({"model": "m", "about": [], "rows": [ROW]}, "row 1"),
        ({"19": ROW}, "key 19"),
        (json.dumps(ROW) + "\n\n{broken\n", "line 1"),
    ],
)
def test_rows_are_found_wherever_they_lie(table, read, content, row):
    (sample,), left = read(table(content), **FIELDS)
    assert (sample.origin.row, sample.identity) == (row, (1, "19"))
    assert (sample.code.decode(), sample.reference.decode()) == (NEW, MODEL)
    assert [one.origin.row for one in left] == (["line 3"] if row == "line 1" else [])


@pytest.mark.parametrize("many", [[0] * 4, {"rows": [0] * 4}, {str(n): {} for n in range(4)}, "{}\n" * 4])
def test_more_rows_than_anybody_means_are_one_reason(table, read, monkeypatch, many):
    monkeypatch.setattr(json_rows, "MOST_ROWS", 3)
    samples, (left,) = read(table(many), **FIELDS)
    assert (samples, left.reason) == ([], "it has more than 3 rows")


@pytest.mark.parametrize("nothing", [None, "None", "null", "", " NaN "])
def test_no_code_is_left_with_its_reason(table, read, nothing):
    samples, (left,) = read(table([ROW | {"code": nothing}]), **FIELDS)
    assert samples == []
    assert left.reason.startswith("its code is ")


@pytest.mark.parametrize(
    "code", [None, "None", "", "I cannot do that.", f"```python\n{NEW}", f"```\n{MODEL}```"], ids=range(6)
)
def test_a_row_that_says_which_sample_it_is_counts_whatever_it_holds(table, read, code):
    samples, _ = read(table([ROW | {"code": code, "n": 3}, ROW | {"n": 4}]), **FIELDS, sample_field="n")
    assert [one.number for one in samples] == [3, 4]
    assert b"ModelNew" not in samples[0].code or samples[0].code == code.encode()


def test_a_column_of_floats_says_what_one_of_whole_numbers_says(table, read):
    """pandas writes 1.0 as soon as one value of a column is missing, and NaN for that."""
    rows = [ROW | {"n": 0, "who": 1}, ROW | {"n": 1, "code": None, "who": 1}, ROW | {"n": 7, "who": 1}]
    floats = [row | {name: float(row[name]) for name in ("level", "task", "n", "who")} for row in rows]
    fields = FIELDS | {"sample_field": "n", "name_field": "who"}
    expected, _ = read(table(rows), **fields)
    found, left = read(table([*floats, floats[0] | {"code": math.nan, "n": math.nan}]), **fields)
    assert found == expected
    assert [(one.number, one.name, one.identity) for one in found] == [(n, "1", (1, "19")) for n in (0, 1, 7)]
    assert [one.reason for one in left] == ["its code is null"]


@pytest.mark.parametrize("field", ["level", "task", "n", "who"])
def test_a_value_that_cannot_be_used_leaves_its_row_and_is_said(table, read, field):
    samples, (left,) = read(table([ROW, ROW | {field: ["odd"]}]), **FIELDS, sample_field="n", name_field="who")
    assert len(samples) == 1
    assert left.origin.row == "row 2"
    assert left.reason.startswith("its ")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"Sure!\n```python\n{NEW}```\nDone.", NEW),
        (f"```python\n{NEW}", None),
        ("```python\nclass Model:\n    pass\n```", "class Model:\n    pass\n"),
        ("def broken(", "def broken(\n"),
        ("\ud800", None),
        ("x" * (5 << 20), None),
        (["a"], None),
    ],
    ids=range(7),
)
def test_code_is_taken_out_of_fences_and_else_as_it_is(table, read, code, expected):
    samples, left = read(table([ROW | {"code": code}]), **FIELDS)
    assert [one.code.decode() for one in samples] == ([] if expected is None else [expected])
    assert bool(left) == (expected is None)


@pytest.mark.parametrize(
    ("row", "claim"),
    [
        ({"speedup": 1.5}, Claim(status="correct", speedup=1.5)),
        ({"speedup": "1.5x"}, Claim(status="correct", speedup=1.5)),
        ({"time": 2.0, "base": 3}, Claim(status="correct", speedup=1.5, time=2.0)),
        ({"time": 1e-300, "base": 1e300}, Claim(time=1e-300)),
        ({"speedup": None, "time": -1}, Claim()),
        ({"ok": True}, Claim(status="correct", said="True")),
        ({"ok": "Compile error"}, Claim(status="not_compiled", said="Compile error")),
        ({"ok": "odd", "speedup": 2}, Claim(speedup=2.0, said="odd")),
        ({"ok": 0}, Claim(status="incorrect", said="0")),
        ({"ok": 1.0}, Claim(status="correct", said="1.0")),
    ],
)
def test_claims_are_as_the_source_makes_them(table, read, row, claim):
    fields = {"speedup_field": "speedup", "status_field": "ok", "time_field": "time", "baseline_time_field": "base"}
    (sample,), _ = read(table([ROW | row]), **FIELDS, **fields)
    assert sample.claim == claim


@pytest.mark.parametrize("reference", [MODEL, f"```python\n{MODEL}```\n", f'"""So:\n```\nx\n```\n"""\n{MODEL}'])
def test_a_problem_loses_the_fence_around_it_and_no_other(table, read, reference):
    (sample,), _ = read(table([ROW | {"ref": reference}]), **FIELDS)
    assert sample.reference.decode() == (MODEL if reference.startswith("```") else reference)


def test_a_field_may_be_below_another(table, read):
    (sample,), _ = read(table([{"answer": {"code": NEW}, "a.b": 7}]), code_field="answer.code", problem_field="a.b")
    assert sample.identity.problem == "7"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([NEW, "```x"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["code", "task", "s"]), inner),
        max_leaves=10,
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_rows_or_reasons(table, read, content):
    samples, left = read(
        table(content), code_field="code", problem_field="task", speedup_field="s", status_field="s", name_field="s"
    )
    assert all(one.reason for one in left)
    assert all(one.claim.speedup is None or one.claim.speedup > 0 for one in samples)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}{}", "1" * 5000, '{"code": ' * 50_000])
def test_no_broken_json_is_more_than_a_reason(table, read, text):
    assert read(table(text), code_field="code")[0] == []


@given(st.floats() | st.integers() | st.text() | st.none() | st.booleans())
def test_a_speedup_is_a_number_above_zero_or_none(value):
    assert values.positive(value) is None or 0 < values.positive(value) < float("inf")


def test_the_fields_of_a_table_are_named_where_none_is_chosen(tmp_path, read):
    (tmp_path / "a.json").write_text(json.dumps({"rows": [{"kernel": NEW, "op": "relu"}, {}]}))
    (one,) = read(tmp_path / "a.json")[1]
    assert one.reason.endswith("with --code-field; its rows have kernel, op")
