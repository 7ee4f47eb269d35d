"""Several samples of a problem: the estimator against counting, what figures are over, where nothing is said."""

import csv
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import metrics
from harness.errors import BadValue
from harness.reports import markdown, samples, write
from harness.reports.html import page


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_at_k_is_the_share_of_all_choices_of_k_with_a_good_one(good, data):
    k = data.draw(st.integers(1, len(good)))
    choices = list(itertools.combinations(good, k))
    assert metrics.at_k(len(good), sum(good), k) == pytest.approx(sum(map(any, choices)) / len(choices))


@given(st.integers(1, 2000), st.data())
def test_at_k_grows_with_k_and_with_good_samples(count, data):
    good, k = data.draw(st.integers(0, count)), data.draw(st.integers(1, count))
    here = metrics.at_k(count, good, k)
    assert 0 <= here <= 1
    assert k == count or metrics.at_k(count, good, k + 1) >= here
    assert good == count or metrics.at_k(count, good + 1, k) >= here


@pytest.mark.parametrize(("count", "good", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (0, 0, 1), (3, -1, 1)])
def test_at_k_refuses(count, good, k):
    with pytest.raises(BadValue):
        metrics.at_k(count, good, k)


@pytest.fixture
def some(make):
    """Three samples of one problem, two of another, whose third has no verdict."""

    def sample(problem, number, status="passed", **fields):
        return make(f"sample_{number}", status, problem=f"level1/{problem}", **fields)

    return [
        sample("a", 0, interval=(4.0, 3.9, 4.1)),
        sample("a", 1, interval=(1.0, 0.9, 1.1)),
        sample("a", 2, "incorrect"),
        sample("b", 0, "compile_error"),
        sample("b", 1, "timeout"),
        sample("b", 2, "unsupported", reason="needs_cuda"),
        make("baseline:tf32", problem="level1/a"),
        make("mine", problem="level1/a"),
    ]


def test_figures_say_what_they_are_over(some):
    (one,) = samples.series(some)
    assert one.place == ("level1", "default", "float16", "eager", "")
    assert (one.samples, one.ks) == (5, [1, 3])
    assert one.fast_p_at_k(0.0, 1) == (pytest.approx((2 / 3 + 0) / 2), 2)
    assert one.fast_p_at_k(1.0, 1) == (pytest.approx(1 / 6), 2)
    assert one.fast_p_at_k(1.0, 3) == (1.0, 1)
    assert samples.sentences(one) == (
        "2 of 5 samples of 2 problems passed (40.0%). Geometric mean of speedups: 2.00x over the 2 samples that "
        "passed, 4.00x over the best sample of the 1 problem with one."
    )
    assert samples.table(one)[0] == ["", "k = 1", "k = 3 (1 problem)"]


def test_the_csv_has_every_figure(some):
    rows = list(csv.DictReader(io.StringIO(samples.to_csv(some))))
    found = {(row["metric"], row["p"], row["k"]): (float(row["value"]), row["over"]) for row in rows}
    assert found["correct_rate", "", ""] == (0.4, "5")
    assert found["fast_p_at_k", "0", "3"] == (1.0, "1")
    assert found["geomean_of_samples", "", ""] == (pytest.approx(2.0), "2")
    assert found["geomean_of_best", "", ""] == (pytest.approx(4.0), "1")
    assert len(rows) == 1 + 6 * 2 + 2


def test_sets_sizes_and_series_are_told_apart(make):
    ones = [
        make(f"{name}sample_{number}", problem=problem, variant=variant)
        for name in ("", "b-", "a-")
        for number in (0, 1)
        for problem in ("level1/x", "level2/x")
        for variant in ("default", "small")
    ]
    titles = [samples.title(one) for one in samples.series(ones)]
    assert len(titles) == 12
    assert titles == sorted(titles)
    assert titles[1] == "level1 · default · float16 · over eager · a"


@pytest.mark.parametrize("reason", ["missing_module:flash_kernels_pro", "not_implemented", "missing_headers"])
def test_a_sample_does_not_get_out_of_the_count_by_asking_for_what_nobody_has(some, make, reason):
    (one,) = samples.series([*some, make("sample_3", "unsupported", problem="level1/b", reason=reason)])
    assert one.samples == 6


def test_a_series_of_wrong_ones_has_no_mean(make):
    (one,) = samples.series([make(f"sample_{number}", "incorrect") for number in (0, 1)])
    assert samples.sentences(one) == "0 of 2 samples of 1 problem passed (0.0%)."


def test_nothing_is_shown_where_no_problem_has_more_than_one_sample(make, tmp_path):
    ones = [make("sample_0"), make("fast"), make("sample_0", problem="a/b"), make("sample_1", "harness_error")]
    assert samples.series(ones) == []
    assert samples.lines(ones) == []
    assert "Samples" not in markdown.leaderboard(ones, {})
    assert "samples" not in page.report(ones, {})
    (tmp_path / "samples.csv").write_text("of a run before")
    write.write_all(tmp_path, ones, {})
    assert not (tmp_path / "samples.csv").exists()


def test_every_report_has_the_samples(some, tmp_path):
    write.write_all(tmp_path, some, {})
    assert (tmp_path / "samples.csv").read_text() == samples.to_csv(some)
    for text in (markdown.leaderboard(some, {}), page.report(some, {}), "\n".join(samples.lines(some))):
        assert "pass@k" in text.replace("<span>@</span>", "@")
        assert "over the best sample of the 1 problem with one" in text


def test_the_text_is_held_still(some, golden):
    golden("samples.txt", "\n".join(samples.lines(some)) + "\n")
