"""The journal against torn files: whatever is cut off at whatever byte, whole records survive and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import records
from harness.errors import UsageError
from harness.records import Record, Status
from harness.store import journal
from harness.store.journal import Journal


def record(number: int, status: Status = Status.INCORRECT, **changes) -> Record:
    fields = {"problem": "p/q", "variant": "default", "precision": "float32", "candidate": f"c{number}"}
    fields |= {"key": f"key{number}", "status": status, "reason": "mismatch", "device": "d", "baseline": "eager"}
    return Record(**(fields | changes))


RECORDS = [record(number, message="x" * number) for number in range(5)]
LINES = b"".join(records.encode(one) + b"\n" for one in RECORDS)


@given(st.integers(0, len(LINES)))
def test_a_file_cut_anywhere_keeps_its_whole_records(cut):
    found, intact = journal.parse(LINES[:cut])
    assert found == RECORDS[: LINES[:cut].count(b"\n")]
    assert intact == LINES[:cut].rfind(b"\n") + 1


def test_the_torn_tail_is_gone_after_opening(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(LINES[:-7])
    with Journal(path) as book:
        assert book.records == RECORDS[:-1]
        book.append(RECORDS[-1])
    assert path.read_bytes() == LINES


def test_a_strange_line_in_the_middle_is_no_crash_s_doing(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"hello\n" + LINES)
    with pytest.raises(UsageError, match=r"line 1 of records\.jsonl is no record"):
        Journal(path)
    assert path.read_bytes() == b"hello\n" + LINES


def test_one_session_at_a_time(tmp_path):
    path = tmp_path / "records.jsonl"
    with Journal(path), pytest.raises(UsageError, match="another run is writing"):
        Journal(path)
    with Journal(path):
        pass


def test_the_harness_s_own_errors_are_tried_again(tmp_path):
    with Journal(tmp_path / "records.jsonl") as book:
        book.append(record(1))
        book.append(record(2, Status.HARNESS_ERROR))
        assert book.finished() == {"key1"}
        book.append(record(2, message="at last"))
        assert book.finished() == {"key1", "key2"}
        assert [one.message for one in journal.latest(book.records)] == ["", "at last"]
        book.clear()
    assert (tmp_path / "records.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.PASSED},
        {"status": Status.INCORRECT, "speedup": 2.0},
        {"status": Status.CRASHED, "reason": ""},
        {
            "status": Status.PASSED,
            "speedup": float("nan"),
            "speedup_lo": 1.0,
            "speedup_hi": 1.0,
            "candidate_ms": 1.0,
            "baseline_ms": 1.0,
        },
    ],
)
def test_illegal_records_cannot_be_built(changes):
    with pytest.raises(ValueError, match="p/q/c1"):
        record(1, **changes)
