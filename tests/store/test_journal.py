"""The journal against torn files: whatever is cut off at whatever byte, whole records survive and nothing else."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import records
from harness.errors import UsageError
from harness.records import Record, Status
from harness.store import journal, run_directory
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
    whole = LINES[:cut] if LINES[cut : cut + 1] == b"\n" else LINES[: LINES[:cut].rfind(b"\n") + 1]
    assert found == RECORDS[: len(whole.splitlines())]
    assert intact == len(whole)


def test_the_torn_tail_is_gone_after_opening(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(LINES[:-7])
    with Journal(path) as book:
        assert book.records == RECORDS[:-1]
        book.append(RECORDS[-1])
    assert path.read_bytes() == LINES


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(LINES[:-1])
    with Journal(path) as book:
        assert book.records == RECORDS
        book.append(RECORDS[0])
    assert path.read_bytes() == LINES + LINES.splitlines(keepends=True)[0]


def test_what_a_file_was_before_is_the_last_again_when_it_is_that_once_more(tmp_path):
    first, second = record(0, key="first"), record(0, key="second")
    with Journal(tmp_path / "records.jsonl") as book:
        for one in (first, second, record(1)):
            book.append(one)
        assert not book.bring_back({"second", "key1"})
        assert book.bring_back({"first", "key1"})
        assert {one.key for one in journal.latest(book.records)} == {"first", "key1"}
        assert len(book.records) == 4
        assert not book.bring_back({"first", "key1"})


@pytest.mark.parametrize("name", ["records.jsonl", "run.json"])
def test_a_pipe_in_place_of_a_file_holds_nobody_up(tmp_path, name):
    (tmp_path / "records.jsonl").write_bytes(LINES)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="not a regular file"):
        run_directory.read(tmp_path)
    with pytest.raises(UsageError, match="not a regular file"), Journal(tmp_path / "records.jsonl"):
        run_directory.manifest(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        ("[]", "it is a list"),
        ("null", "it is a NoneType"),
        ('{"environment": "x"}', "'environment' is a str"),
        ('{"config": {"timing": 3}}', "'config.timing' is an int"),
        ('{"config": {"provenance": {"forbid": 3}}}', "'config.provenance.forbid' is an int"),
        ('{"command": [["x"]]}', "'command' is neither words nor a text"),
        ('{"parts": [1]}', "a part of it is an int"),
        ('{"jobs": {"a": ["b"]}}', "'jobs' has one that is no five words"),
        ('{"parts": [{"after_line": "x"}]}', "'after_line' is not a number"),
        ('{"environment": {"sandbox_missing": 3}}', "'sandbox_missing' is not a mapping"),
    ],
)
def test_a_manifest_of_another_shape_is_said_so(tmp_path, manifest, fault):
    (tmp_path / "records.jsonl").write_bytes(LINES)
    (tmp_path / "run.json").write_text(manifest)
    with pytest.raises(UsageError) as raised:
        run_directory.read(tmp_path)
    assert f"run.json is not a run's manifest: {fault}; move the file away" in str(raised.value)


@pytest.mark.parametrize("claimed", [-1.0, 0.0])
def test_a_claim_that_is_no_figure_is_no_record(tmp_path, claimed):
    line = LINES.replace(b'"claimed_speedup":null', b'"claimed_speedup":%f' % claimed, 1)
    (tmp_path / "records.jsonl").write_bytes(line)
    with pytest.raises(UsageError, match="a claimed speedup is positive and finite"):
        run_directory.read(tmp_path)


def test_a_strange_line_in_the_middle_is_no_crash_s_doing(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"hello\n" + LINES)
    with pytest.raises(UsageError, match=r"line 1 of records\.jsonl is not a record"):
        Journal(path)
    assert path.read_bytes() == b"hello\n" + LINES


def linked(path, victim):
    path.symlink_to(victim)


def hard_linked(path, victim):
    os.link(victim, path)


@pytest.mark.parametrize(("put", "why"), [(linked, "it is a link"), (hard_linked, "it has another name")])
@pytest.mark.parametrize("text", ["alias ls=ls", "", LINES.decode()])
def test_a_journal_that_is_another_file_of_the_user_s_is_left_alone(tmp_path, put, why, text):
    victim = tmp_path / "bashrc"
    victim.write_text(text)
    put(tmp_path / "records.jsonl", victim)
    with pytest.raises(UsageError, match=f"records.jsonl: {why}"):
        Journal(tmp_path / "records.jsonl")
    assert victim.read_text() == text


@pytest.mark.parametrize("tail", [b"export PATH", b"\x7fELF", b"{}", b'{"other": 1}'])
@pytest.mark.parametrize("before", [b"", LINES])
def test_a_last_line_that_no_crash_leaves_is_not_cut_off(tmp_path, before, tail):
    path = tmp_path / "records.jsonl"
    path.write_bytes(before + tail)
    with pytest.raises(UsageError, match="its last line is no record"):
        Journal(path)
    assert path.read_bytes() == before + tail


@pytest.mark.parametrize("tail", [b"\0" * 100, b"{", b'{"key":"ab'])
def test_what_a_crash_leaves_of_a_line_is_cut_off(tmp_path, tail):
    path = tmp_path / "records.jsonl"
    path.write_bytes(LINES + tail)
    with Journal(path):
        pass
    assert path.read_bytes() == LINES


def test_one_session_at_a_time(tmp_path):
    path = tmp_path / "records.jsonl"
    with Journal(path), pytest.raises(UsageError, match="another run is writing"):
        Journal(path)
    with Journal(path):
        pass


@pytest.mark.parametrize(
    ("then", "now", "again"),
    [
        (10.0, 10.0, False),
        (10.0, 9.0, False),
        (10.0, 11.0, True),
        (0.0, 8.0, True),
        (8.0, 0.0, True),
        (0.0, 0.0, False),
    ],
)
def test_what_ended_by_a_limit_is_tried_again_where_that_is_larger(tmp_path, then, now, again):
    ended = record(1, Status.TIMEOUT, limit={"limits.load_s": then})
    with Journal(tmp_path / "records.jsonl") as book:
        book.append(ended)
        book.append(record(2))
        others = {"limits.call_s": 1e6}
        assert book.finished({"limits.load_s": now} | others) == ({"key2"} if again else {"key1", "key2"})
        book.append(record(1, message="with more time"))
        assert book.finished({"limits.load_s": now} | others) == {"key1", "key2"}


def test_what_a_newer_version_wrote_is_refused_in_one_sentence(tmp_path):
    newer = records.encode(RECORDS[0]).replace(b'"schema":1', b'"schema":2')
    (tmp_path / "records.jsonl").write_bytes(newer + b"\n" + LINES)
    with pytest.raises(UsageError, match=r"line 1 .*a newer version of Assay wrote it \(schema 2"):
        run_directory.read(tmp_path)
    with_a_new_status = newer.replace(b'"status":"incorrect"', b'"status":"unheard_of"')
    (tmp_path / "records.jsonl").write_bytes(with_a_new_status + b"\n" + LINES)
    with pytest.raises(UsageError, match=r"line 1 .*a newer version of Assay wrote it \(schema 2"):
        run_directory.read(tmp_path)
    (tmp_path / "records.jsonl").write_bytes(LINES)
    (tmp_path / "run.json").write_text('{"schema": 2}')
    with pytest.raises(UsageError, match="a newer version of Assay wrote it"):
        run_directory.read(tmp_path)


def test_the_harness_s_own_errors_are_tried_again(tmp_path):
    with Journal(tmp_path / "records.jsonl") as book:
        book.append(record(1))
        book.append(record(2, Status.HARNESS_ERROR))
        assert book.finished({}) == {"key1"}
        book.append(record(2, message="at last"))
        assert book.finished({}) == {"key1", "key2"}
        assert [one.message for one in journal.latest(book.records)] == ["", "at last"]
        book.clear()
    assert (tmp_path / "records.jsonl").read_bytes() == b""


def test_what_the_machine_lacked_is_tried_again(tmp_path):
    """It may be there by now. Another device has other keys, and no machine implements what torch does not."""
    lacks = ["needs_compiler", "missing_module:triton", "missing_headers", "needs_cuda", "not_implemented"]
    with Journal(tmp_path / "records.jsonl") as book:
        for number, reason in enumerate(lacks):
            book.append(record(number, Status.UNSUPPORTED, reason=reason))
        assert book.finished({}) == {"key3", "key4"}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)
words = st.text(st.characters() | st.sampled_from("\x1b\u202e\ud800\0\r\n|`<[="))


@given(words, words, st.lists(words), st.dictionaries(words, anything))
def test_whatever_was_said_can_be_kept_and_read_again(message, name, warnings, evidence):
    told = record(1, message=message, candidate=name, warnings=warnings, notes=warnings, evidence=evidence)
    kept = records.presentable(told)
    (again,), _ = journal.parse(records.encode(kept) + b"\n")
    assert (again.message, again.candidate, again.warnings) == (kept.message, kept.candidate, kept.warnings)
    shown = f"{kept.message}{kept.candidate}{''.join(kept.warnings)}"
    assert all(letter.isprintable() or letter in "\n\t" for letter in shown)


def test_what_is_kept_is_bounded_in_every_direction():
    deep: object = "x"
    for _ in range(900):
        deep = [deep]
    evidence = {"long": "x" * 9_000_000, "deep": deep, "wide": list(range(3_000_000)), "number": 10**4000}
    evidence |= {f"key {number}": "y" * 4000 for number in range(1000)}
    told = record(1, message="m" * 7_000_000, warnings=["w" * 7_000_000] * 5000, notes=["n"] * 5000, evidence=evidence)
    kept = records.presentable(told)
    line = records.encode(kept)
    assert len(line) < 1_000_000
    assert (len(kept.notes), kept.notes[-1]) == (100, "and 4901 more")
    assert records.presentable(kept).notes == kept.notes
    assert journal.parse(line + b"\n")[0][0].key == "key1"


def test_what_an_honest_record_says_is_kept_as_it_is():
    evidence = {"worst": [{"index": [3, 4], "got": 0.5}], "output_tail": "a.cu(3): error\n\tx = 'µ';\n" * 100}
    told = record(1, message="out of range at (3, 4): 2 µs too late", warnings=["a", "b"], evidence=evidence)
    assert records.presentable(told) == told


def test_what_steers_a_terminal_never_gets_into_the_file(tmp_path):
    with Journal(tmp_path / "records.jsonl") as book:
        kept = book.append(record(1, message="\x1b[2J\ud800"))
    assert kept.message == "\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}"
    assert journal.parse((tmp_path / "records.jsonl").read_bytes())[0] == [kept]


def test_a_line_that_is_nested_without_end_is_no_record(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"evidence": ' + b"[" * 100_000 + b"\n")
    with pytest.raises(UsageError, match="line 1"):
        Journal(path)


@pytest.mark.parametrize("written", [0, 10])
def test_a_full_disk_is_a_sentence_and_keeps_what_is_there(tmp_path, monkeypatch, written):
    path = tmp_path / "records.jsonl"
    write = os.write

    def full(file, data):
        if written:
            return write(file, data[:written])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal(path) as book:
        book.append(RECORDS[0])
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(UsageError, match=r"No space left on device. Finished results are saved"):
                book.append(RECORDS[1])
    with Journal(path) as book:
        assert book.records == RECORDS[:1]


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
        *(
            {
                "status": Status.PASSED,
                "speedup": 2.0,
                "speedup_lo": lo,
                "speedup_hi": hi,
                "candidate_ms": 1.0,
                "baseline_ms": 1.0,
            }
            for lo, hi in ((2.1, 2.2), (1.0, 1.9), (2.1, 1.9))
        ),
    ],
)
def test_illegal_records_cannot_be_built(changes):
    with pytest.raises(ValueError, match="p/q/c1"):
        record(1, **changes)
