import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records import Status
from harness.reports import text


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, ""),
        (0.0005, "0.50 µs"),
        (0.0413, "41.3 µs"),
        (0.412, "412 µs"),
        (7.4196, "7.42 ms"),
        (87.9, "87.9 ms"),
        (999.4, "999 ms"),
        (1234.0, "1.23 s"),
    ],
)
def test_durations_come_in_the_unit_that_suits(ms, words):
    assert text.duration(ms) == words


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((3.1, 3.08, 3.12), "3.10x [3.08, 3.12]"),
        ((9.98, 9.93, 10.03), "9.98x [9.93, 10.03]"),
        ((0.843, 0.84, 0.846), "0.843x [0.840, 0.846]"),
        ((0.0843, 0.084, 0.0846), "0.084x [0.084, 0.085]"),
        ((0.00123, 0.0012, 0.00126), "0.0012x [0.0012, 0.0013]"),
        ((0.0000123, 0.000012, 0.0000126), "1.2e-05x [1.2e-05, 1.3e-05]"),
        ((1e-29, 1e-30, 1e29), "1.0e-29x [1.0e-30, 1e+29]"),
        ((0.72, 2.35e-87, 2.06e86), "0.720x [2e-87, 2e+86]"),
    ],
)
def test_an_interval_has_its_speedups_decimals(make, figures, words):
    assert text.speedup(make("c", interval=figures)) == words


@pytest.mark.parametrize("value", [1e-320, 1e-300, 1e-4, 0.1, 1.0, 99999.0, 1e300])
def test_a_figure_is_short_whatever_is_claimed(value):
    assert len(text.factor(value)) <= 9
    assert len(text.ratio(value, value, value)) <= 40


def test_without_a_speedup_there_are_no_figures(make):
    failed = make("c", "timeout")
    assert text.speedup(failed) == text.interval(failed) == ""


@pytest.mark.parametrize(("value", "words"), [(None, ""), (float("nan"), ""), (float("inf"), ""), (175.2, "175")])
def test_numbers_that_are_none_are_empty(value, words):
    assert text.number(value) == words


@pytest.mark.parametrize(("seconds", "words"), [(0.9, "0 s"), (59.9, "59 s"), (185, "3 min 05 s")])
def test_elapsed(seconds, words):
    assert text.elapsed(seconds) == words


def test_candidates_words_cannot_move_the_cursor_or_break_a_line():
    assert text.clean("red \x1b[31mred\r\nnext\u202eline\u2028end") == "red ?[31mred next?line end"


@given(st.text(max_size=2 * text.LONGEST))
def test_cleaned_words_are_one_bounded_printable_line_and_stay_so(words):
    line = text.clean(words)
    assert line.isprintable()
    assert len(line) <= text.LONGEST
    assert text.clean(line) == line


def test_marks_are_not_drawn_over_other_lines():
    assert text.clean("a" + 50 * "\N{COMBINING ACUTE ACCENT}").count("\N{COMBINING ACUTE ACCENT}") == 2


def test_every_status_has_a_meaning():
    assert list(text.MEANINGS) == list(Status)


def test_a_verdict_is_a_sentence(make):
    passed = make("fast", interval=(2.0, 1.9, 2.1), baseline_ms=7.42)
    assert (
        text.verdict(passed)
        == "Right in every call. 2.00x as fast as eager: 3.71 ms a call, where eager takes 7.42 ms."
    )
    assert text.verdict(make("slow", "timeout")) == "No answer before a deadline."
