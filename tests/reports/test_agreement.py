"""Claims of sources beside verdicts: the table, what agrees, and every disagreement with its grounds."""

import os

import pytest
from rich.console import Console

from harness.records import Status
from harness.reports import agreement, markdown
from harness.reports.agreement import Relation
from harness.reports.html import page
from harness.reports.terminal import leaderboard


@pytest.mark.parametrize(
    ("claim", "status", "fields", "expected"),
    [
        ("correct", "passed", {}, Relation.AGREE),
        ("correct", "passed", {"claimed_speedup": 1.5, "interval": (0.9, 0.8, 1.01)}, Relation.AGREE),
        ("correct", "passed", {"claimed_speedup": 1.5, "interval": (0.9, 0.8, 0.99)}, Relation.SLOWER),
        ("correct", "passed", {"claimed_speedup": 0.9, "interval": (0.9, 0.8, 0.99)}, Relation.AGREE),
        ("correct", "incorrect", {}, Relation.REFUSED),
        ("correct", "unsupported", {"reason": "needs_cuda"}, Relation.OPEN),
        ("correct", "unsupported", {"reason": "missing_module:flash"}, Relation.REFUSED),
        ("incorrect", "unsupported", {"reason": "not_implemented"}, Relation.AGREE),
        ("incorrect", "passed", {}, Relation.PASSED),
        ("not_compiled", "passed", {}, Relation.PASSED),
        ("incorrect", "crashed", {}, Relation.AGREE),
        ("not_compiled", "incorrect", {}, Relation.AGREE),
        ("incorrect", "harness_error", {}, Relation.OPEN),
    ],
)
def test_only_whether_it_is_right_counts(make, claim, status, fields, expected):
    assert agreement.relation(make("c", status, claimed_status=claim, **fields)) is expected


def test_every_record_with_a_claim_is_counted_once(make):
    ones = [
        make("c", one, claimed_status=claim) for one in Status for claim in ("correct", "incorrect", "not_compiled")
    ]
    said = agreement.summary([*ones, make("d")])
    assert sum(int(part.split()[0]) for part in said.removeprefix("Claims: ").split("; ")) == len(ones)


def test_the_page_is_held_still(make, golden):
    records = [
        make("fast", claimed_status="correct", claimed_speedup=2.5),
        make("slow", claimed_status="correct", claimed_speedup=2.5, interval=(0.5, 0.49, 0.51)),
        make("wrong", "incorrect", claimed_status="correct", claimed_speedup=9.0, message="The last row\nis missing."),
        make("odd", claimed_status="not_compiled", claimed_said="no nvcc"),
        make("broken", "compile_error", claimed_status="incorrect"),
        make("silent"),
        make("baseline:tf32"),
    ]
    golden("claims.txt", "\n".join(agreement.lines(records)) + "\n")


def test_a_run_of_ones_own_candidates_says_so(make):
    (line,) = agreement.lines([make("c")])
    assert line.startswith("No candidate of this run was imported with a claim")


@pytest.fixture
def disputed(make):
    return [
        make("fine", claimed_status="correct", claimed_speedup=2.5),
        make("wrong", "incorrect", claimed_status="correct", claimed_speedup=9.0, reason="mismatch:tail_rows"),
        make("silent"),
    ]


def test_a_claim_stands_beside_its_verdict_with_the_cause_of_a_dispute(disputed):
    assert [agreement.remark(one) for one in disputed] == [
        "claimed correct 2.50x",
        "claimed correct 9.00x; right for them, refused here: incorrect, mismatch:tail_rows",
        "",
    ]


def test_what_kernelbenchs_rule_says_stands_beside_both(make):
    ones = [
        make("close", "incorrect", claimed_status="correct", kernelbench_correct=True),
        make("far", "incorrect", kernelbench_correct=False),
        make("fine", kernelbench_correct=True),
        make("strict", kernelbench_correct=False),
        make("unknown", "crashed"),
    ]
    assert agreement.rule_summary(ones) == (
        "KernelBench's rule: 2 correct, of which 1 did not pass; 2 incorrect, of which 1 passed."
    )
    assert agreement.remark(ones[0]).endswith("incorrect, mismatch:values; KernelBench's rule: correct")
    assert agreement.remark(ones[-1]) == ""
    said = agreement.lines(ones)
    assert agreement.rule_summary(ones) in said
    assert said[-1] == (
        "attention/sdpa/close: theirs correct; KernelBench's rule: correct; ours incorrect, mismatch:values"
    )
    assert "KernelBench's rule: incorrect" in markdown.leaderboard(ones, {})
    assert "KernelBench&#39;s rule: incorrect" in page.report(ones, {})
    assert agreement.rule_summary(ones[-1:]) == ""


def test_every_leaderboard_shows_claims_if_there_are_any(disputed, make):
    def shown(records):
        with open(os.devnull, "w") as file:
            console = Console(record=True, width=200, file=file)
            leaderboard.show(records, console)
        return [console.export_text(), markdown.leaderboard(records, {}), page.report(records, {})]

    for report in shown(disputed):
        assert "correct 9.00x" in report
        # A narrow column breaks the line.
        assert "refused here: incorrect," in report
        assert "Claims: 1 agree; 1 right for them, refused here" in report
    for report in shown([make("silent")]):
        assert "laim" not in report
