"""Rows of JSON: the same as if the text were parsed as a whole, without the memory that this takes."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.packs import json_rows
from harness.packs.files import Unusable

KEYS = st.sampled_from(["code", "a", "b", 'q"]}', "\\", ""])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(['"', "\\", "],{"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def expected(whole) -> list:
    """Which values are rows."""
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict) or whole.get("code") is not None:
        return [whole]
    if all(isinstance(one, dict) for one in whole.values()):
        return list(whole.values())
    return max((one for one in whole.values() if isinstance(one, list)), key=len, default=[whole])


def found(text: str) -> list:
    return [one for _, one in json_rows.rows(text, "code")]


@given(ANY, st.sampled_from([None, 1]), st.booleans())
def test_the_rows_are_those_of_the_whole(value, indent, plain):
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    # As texts, because no NaN is equal to another.
    assert repr(found(text)) == repr(expected(json.loads(text)))


@given(st.text(alphabet='[]{},:"\\ \n01', max_size=30))
def test_any_text_is_rows_or_one_reason(text):
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    try:
        rows = found(text)
    except Unusable:
        assert whole is None
        return
    # Of two members with one key both are rows, and json knows the last only.
    if isinstance(whole, list):
        assert rows == whole


def test_one_broken_row_costs_no_other():
    (_, first), (place, second), (_, third) = json_rows.rows('[{"a": 1}, {"a": x}, {"a": 3}]', "a")
    assert (first, place, third) == ({"a": 1}, "row 2", {"a": 3})
    assert str(second).startswith("it is no JSON: ")


@pytest.mark.parametrize(
    "text",
    [
        "[" + "0," * 300_000 + "0]",
        '[{"a": [' + "[]," * 300_000 + "0]}]",
        '{"a": [' + "{}," * 300_000 + "0]}",
        "{" + ",".join(f'"{n}":{{}}' for n in range(100_000)) + "}",
        "{}\n" * 300_000,
        '{"code": "x", "b": [' + "[]," * 300_000 + "0]}",
    ],
    ids=["rows", "row", "list", "keys", "lines", "single"],
)
def test_a_text_takes_little_more_memory_than_its_size(text, monkeypatch):
    monkeypatch.setattr(json_rows, "MOST_ROWS", 1000)
    tracemalloc.start()
    try:
        refused = all(isinstance(one, Unusable) for one in found(text))
    except Unusable:
        refused = True
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused
    assert most < 1.5 * len(text)


def test_what_has_too_many_values_is_not_parsed():
    assert json_rows.parsed("[1, 2]", 3) == [1, 2]
    with pytest.raises(Unusable, match="more than 3 values"):
        json_rows.parsed("[1, 2, 3]", 3)
