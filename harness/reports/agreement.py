"""What the sources of imported candidates claim, beside what a run found."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from harness.records import Record, Status, is_no_word
from harness.reports import text

CORRECT = "correct"
NOTHING = "says nothing"


class Relation(StrEnum):
    """How a claim and a verdict relate. Only whether the candidate is right counts: others may say `incorrect` of one
    that does not compile."""

    AGREE = "agree"
    REFUSED = "right for them, refused here"
    PASSED = "wrong for them, passed here"
    SLOWER = "faster for them, slower here"
    OPEN = "no verdict"


def claimed(record: Record) -> bool:
    """Whether a source says if the candidate is right."""
    return bool(record.claimed_status)


def relation(record: Record) -> Relation:
    """For a record with a claim. `slower` needs an interval wholly below 1 where they claim more."""
    if is_no_word(record):
        return Relation.OPEN
    right = record.claimed_status == CORRECT
    if record.status is not Status.PASSED:
        return Relation.REFUSED if right else Relation.AGREE
    if not right:
        return Relation.PASSED
    slower = (record.claimed_speedup or 0.0) > 1 and record.speedup_hi is not None and record.speedup_hi < 1
    return Relation.SLOWER if slower else Relation.AGREE


def theirs(record: Record) -> str:
    """The claim: `correct 2.50x`; empty without one."""
    speedup = text.factor(record.claimed_speedup) if record.claimed_speedup else ""
    return text.clean(f"{record.claimed_status} {speedup}")


def dispute(record: Record) -> str:
    """How claim and verdict differ, with what the record knows of the cause: `right for them, refused here: incorrect,
    mismatch:tail_rows`. Empty where they agree or there is no claim."""
    kind = relation(record) if claimed(record) else Relation.AGREE
    return "" if kind is Relation.AGREE else text.clean(f"{kind}: {_ours(record)}")


def summaries(records: Sequence[Record]) -> list[str]:
    """A line on claims and one on KernelBench's rule, where there are any."""
    claims = [f"{summary(records)}."] if any(map(claimed, records)) else []
    return [*claims, *filter(None, [rule_summary(records)])]


def rule_summary(records: Iterable[Record]) -> str:
    """`KernelBench's rule: 12 correct, of which 3 did not pass; 4 incorrect, of which 0 passed.`; or nothing."""
    found = Counter((one.kernelbench_correct, one.status is Status.PASSED) for one in records)
    right, wrong = (sum(found[said, passed] for passed in (True, False)) for said in (True, False))
    if not right + wrong:
        return ""
    said = f"{right} correct, of which {found[True, False]} did not pass"
    return f"KernelBench's rule: {said}; {wrong} incorrect, of which {found[False, True]} passed."


def remark(record: Record) -> str:
    """The claim, how the verdict differs, and what KernelBench's rule says, as far as there are these; or nothing."""
    claim = f"claimed {theirs(record)}" if claimed(record) else ""
    return "; ".join(filter(None, [claim, dispute(record), rule(record)]))


def rule(record: Record) -> str:
    """`KernelBench's rule: correct`; empty where it says nothing."""
    known = {True: "correct", False: "incorrect"}
    return "" if record.kernelbench_correct is None else f"KernelBench's rule: {known[record.kernelbench_correct]}"


def summary(records: Iterable[Record]) -> str:
    """`Claims: 45 agree, 4 right for them, refused here, ...`, in one line."""
    counts = Counter(relation(record) for record in records if claimed(record))
    return "Claims: " + "; ".join(f"{counts[one]} {one}" for one in Relation if counts[one])


def lines(records: Sequence[Record]) -> list[str]:
    """The table theirs x ours, the summary, both speedups, and every disagreement with the verdict's grounds."""
    ones = [record for record in records if claimed(record)]
    ruled = rule_summary(records)
    if not ones:
        return ["No candidate of this run was imported with a claim: see docs/import.md.", *filter(None, [ruled])]
    said = [*_table(records), "", summary(ones), *_speedups(ones), *filter(None, [ruled])]
    for kind in (Relation.REFUSED, Relation.PASSED, Relation.SLOWER):
        members = [record for record in ones if relation(record) is kind]
        if members:
            said += ["", f"{kind} ({len(members)}):", *map(_line, members)]
    return said


def _table(records: Sequence[Record]) -> list[str]:
    """A row for each claim, a column for each status that there is. Baselines are nobody's claim."""
    counts = Counter((one.claimed_status or NOTHING, one.status) for one in records if not _is_baseline(one))
    statuses = [status for status in Status if any(ours is status for _, ours in counts)]
    claims = sorted({text.clean(theirs) for theirs, _ in counts}, key=lambda theirs: (theirs == NOTHING, theirs))
    first = max(len(one) for one in (*claims, "theirs"))
    rows = ["  ".join(["theirs".ljust(first), *statuses])]
    for claim in claims:
        cells = [str(counts[claim, status] or "").rjust(len(status)) for status in statuses]
        rows.append("  ".join([claim.ljust(first), *cells]).rstrip())
    return rows


def _speedups(records: Sequence[Record]) -> list[str]:
    both = [(one.claimed_speedup, one.speedup) for one in records if one.claimed_speedup and one.speedup]
    if not both:
        return []
    theirs, ours = (statistics.geometric_mean([float(value) for value in side]) for side in zip(*both, strict=True))
    what = f"Speedups of the {len(both)} that have both, geometric mean"
    return [f"{what}: theirs {text.factor(theirs)}, ours {text.factor(ours)}."]


def _line(record: Record) -> str:
    why = f": {record.message}" if record.message else ""
    ours = "; ".join(filter(None, [rule(record), f"ours {_ours(record)}{why}"]))
    said = f" ({record.claimed_said})" if record.claimed_said else ""
    return text.clean(f"{record.problem}/{record.candidate}: theirs {theirs(record)}{said}; {ours}")


def _ours(record: Record) -> str:
    return f"passed {text.speedup(record)}" if record.status is Status.PASSED else f"{record.status}, {record.reason}"


def _is_baseline(record: Record) -> bool:
    return record.candidate.startswith("baseline:")
