import random

import pytest

from harness.records import Status
from harness.reports import text
from harness.reports.groups import grouped, summarise


def test_order_does_not_depend_on_who_finished_first(records):
    shuffled = records.copy()
    random.Random(1).shuffle(shuffled)
    assert grouped(shuffled) == grouped(records)


def test_passed_come_first_by_speedup_then_the_rest_by_status_and_name(make):
    records = [
        make("zulu", "timeout"),
        make("bravo", "incorrect"),
        make("alpha", "incorrect"),
        make("slow", interval=(1.1, 1.0, 1.2)),
        make("tied", interval=(2.95, 2.9, 3.05)),
        make("fast", interval=(3.0, 2.9, 3.1)),
    ]
    (group,) = grouped(records)
    standing = [(entry.rank, entry.record.candidate) for entry in group.entries]
    assert standing == [(1, "fast"), (1, "tied"), (3, "slow"), (None, "alpha"), (None, "bravo"), (None, "zulu")]
    assert group.best is not None
    assert group.best.candidate == "fast"


def test_groups_are_ordered_by_problem_variant_precision(make):
    names = [("b/x", "default", "float16"), ("a/y", "small", "float16"), ("a/y", "default", "float32")]
    records = [
        make("c", problem=problem, variant=variant, precision=precision) for problem, variant, precision in names
    ]
    assert [(group.problem, group.variant, group.precision) for group in grouped(records)] == sorted(names)


def test_speedups_over_another_baseline_are_not_ranked_together(make):
    eager, graph = grouped([make("c"), make("c", baseline="cuda_graph", baseline_ms=5.0)])
    assert (eager.baseline, graph.baseline) == ("cuda_graph", "eager")
    assert (eager.baseline_ms, graph.baseline_ms) == (5.0, 7.42)


def test_baseline_time_is_the_median_of_those_that_have_one(make):
    (group,) = grouped([make("a", baseline_ms=1.0), make("b", "incorrect", baseline_ms=4.0), make("c", "timeout")])
    assert group.baseline_ms == 2.5
    (untimed,) = grouped([make("c", "timeout")])
    assert untimed.baseline_ms is None


def test_summary_takes_the_best_of_each_problem(records):
    summary = summarise(grouped(records))
    assert summary is not None
    assert summary.geomean == pytest.approx((4.1 * 1.84) ** 0.5)
    assert summary.fast_1 == pytest.approx(2 / 3)
    assert (summary.problems, summary.solved) == (3, 2)
    assert summary.statuses[Status.PASSED] == 5
    assert sum(summary.statuses.values()) == len(records)


def test_what_is_faster_within_its_interval_only_is_not_surely_faster(make):
    summary = summarise(grouped([make("c", interval=(1.01, 0.99, 1.03))]))
    assert summary is not None
    assert (summary.fast_1, summary.faster, summary.surely) == (1.0, 1, 0)
    assert text.faster(summary) == "1 of 1 problem above 1x, 0 of them surely"


def test_summary_of_failures_has_no_geomean(make):
    summary = summarise(grouped([make("c", "timeout")]))
    assert summary is not None
    assert (summary.geomean, summary.fast_1) == (None, 0.0)
    assert summarise([]) is None
