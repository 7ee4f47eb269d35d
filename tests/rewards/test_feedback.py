"""What a model reads of its record: within the limit, of use, and without what a candidate must not know."""

import re
import time
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import records
from harness.errors import BadValue
from harness.oracle import explain, structure
from harness.records import Status, Timing
from harness.rewards.feedback import TELLING, cut, feedback
from tests.rewards.test_rewards import failed, passed

QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

numbers = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda x: len(f"{x:.6g}") >= TELLING)
texts = st.text(max_size=5000)
records_of_any_kind = st.builds(
    failed,
    st.sampled_from([status for status in Status if status is not Status.PASSED]),
    texts.filter(bool),
    message=texts,
    evidence=st.dictionaries(
        st.sampled_from(["errors", "line", "share_wrong", "shape", "worst", "first"]),
        st.none() | st.integers() | st.floats() | texts | st.lists(st.integers()) | st.dictionaries(texts, texts),
    ),
    warnings=st.lists(texts, max_size=10),
)


@QUICK
@given(records_of_any_kind, st.integers(0, 4000), texts)
def test_it_is_never_longer_than_the_limit(record, limit, source):
    assert len(feedback(record, limit, source=source)) <= limit
    assert len(feedback(records.presentable(record), source=source)) <= 2048


@QUICK
@given(st.text(), st.integers(0, 300))
def test_the_middle_is_what_is_left_out(text, limit):
    text = text * 5
    kept = cut(text, limit)
    assert len(kept) <= limit
    if len(text) <= limit:
        assert kept == text
    elif " characters or more are left out ...]" in kept:
        assert text.startswith(kept.partition("\n[... ")[0])
        assert text.endswith(kept.rpartition(" left out ...]\n")[2])


def forms(number):
    return {form for form in (f"{number:.6g}", f"{number:.9g}", repr(number)) if len(form) >= TELLING}


@QUICK
@given(numbers, numbers, st.lists(st.integers(0, 99), max_size=4), st.booleans())
def test_no_right_value_of_an_element_is_told(got, expected, index, as_warning):
    """Bound to the words in which the oracle tells of an element."""
    element = {"index": index, "got": got, "expected": expected}
    said = explain._told(element)
    message = f"output: no usual mistake fits; 3 of 6144 elements wrong (the worst {said}); error 0.5"
    evidence = {"worst": element, "first": element, "shape": [64, 96], "share_wrong": 0.25}
    more = {"warnings": [f"stress: on inputs 'huge': {message}"[:300]]} if as_warning else {"message": message}
    text = feedback(failed(Status.INCORRECT, "mismatch", evidence=evidence, **more), 10_000)
    for form in forms(expected) - forms(0.25) - forms(0.5):
        assert not re.search(rf"(?<![\w.]){re.escape(form)}(?!\w)", text)
    assert "no usual mistake fits" in text
    if index:
        assert str(index) in text


@QUICK
@given(numbers)
def test_nor_where_a_number_itself_is_the_output(expected):
    record = failed(Status.INCORRECT, "mismatch:scalar", message=f"output: expected {expected!r}, got 3")
    assert repr(expected) not in feedback(record)


def test_nor_in_a_warning_about_hard_inputs():
    said = "stress: on inputs 'minus_infinity' its answer is another one: output[1]: expected 2125, got 7"
    hard = failed(Status.INCORRECT, "mismatch:scalar:last_of_all", message="output[1]: expected 4095, got 7")
    text = feedback(msgspec.structs.replace(hard, warnings=[said]))
    assert "2125" not in text
    assert "4095" not in text
    assert "minus_infinity" in text


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (True, 5),
        ((1, 2), [1]),
        ({"k": torch.ones(2)}, None),
        (torch.ones(2), 1.0),
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2, dtype=torch.int8)),
        (None, 3),
    ],
)
def test_what_an_output_is_of_another_kind_than_is_told(expected, got):
    """Bound to the words of the oracle."""
    fault = structure.compare([expected], [got])
    said = f"{fault.leaf}: {fault.message}"
    record = failed(Status.INCORRECT, fault.reason, message=said, warnings=[f"stress: on inputs 'huge': {said}"])
    assert feedback(record).count(said) == 2


@pytest.mark.parametrize("path", ["output", "output[1]", "output['a: expected b']['c]']"])
@pytest.mark.parametrize("value", [4095, -4.5, True, float("nan"), "a text; b", "shape (3)", "long " * 100, "a \n b"])
def test_what_its_value_is_is_not(path, value):
    """Bound to the words of oracle/checks.py, in a warning, which has no reason of its own."""
    record = failed(
        Status.INCORRECT, "mismatch", warnings=[f"stress: on inputs 'huge': {path}: expected {value!r}, got 3"]
    )
    text = feedback(record)
    assert repr(value) not in text
    assert f"{path}: a number in it is wrong" in text


def test_nor_are_words_of_the_candidate_s_own_changed():
    said = "mine.py:3: TypeError: not enough values to unpack (expected 2, got 1)"
    assert said in feedback(failed(Status.RUNTIME_ERROR, "exception:TypeError", message=said))


OURS = """harness/runner/cuda_runner.py:87 (for mine.py, of which no line called it): AcceleratorError: CUDA error
Traceback (most recent call last):
  File "/opt/assay/harness/runner/runner.py", line 12, in serve
"""


def test_no_place_of_ours_is_told():
    text = feedback(failed(Status.RUNTIME_ERROR, "device_assert", message=OURS))
    assert text == "runtime_error: device_assert\nmine.py: AcceleratorError: CUDA error\n"


def test_a_failure_of_ours_is_said_to_be_one():
    text = feedback(failed(Status.HARNESS_ERROR, "judge_lost", message="the judge went away: secret"))
    assert text == "harness_error: judge_lost\nThe harness failed, not this candidate. Submit it again."


SOURCE = """import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x @ 3
"""


@pytest.mark.parametrize("between", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_a_line_is_the_interpreters_own(between):
    source = f"# {between} one\nraise ValueError\n"
    with pytest.raises(ValueError) as found:
        exec(compile(source, "candidate.py", "exec"))
    line = found.traceback[-1].lineno + 1
    text = feedback(failed(Status.RUNTIME_ERROR, "exception:ValueError", evidence={"line": line}), source=source)
    assert ">    2 | raise ValueError" in text


def test_the_place_in_its_own_source_is_quoted():
    record = failed(Status.RUNTIME_ERROR, "exception:TypeError", message="a.py:6: TypeError: no", evidence={"line": 6})
    text = feedback(record, source=SOURCE)
    assert ">    6 |         return x @ 3" in text
    assert "     4 | class ModelNew(nn.Module):" in text
    assert "import torch" not in text


MANY = 20_000
REPEATED = ["1", "1.", "-1e", "nan", "at [1", ": 1", "a", " ", "\n", "]: "]
REPEATED += ["harness/", "harness/a.py:1 (for ", 'File "']


@pytest.mark.parametrize("letters", REPEATED)
def test_no_text_of_a_candidate_takes_long(letters):
    """12 kB of digits took 9 s."""
    text = letters * (MANY // len(letters))
    source = f"import torch\nraise ValueError('x')  # {text}\n"
    evidence = {"line": 2, "expected": 1234.5, "shape": [text], "first": {"index": text}}
    errors = [{"text": text, "line": 2, "source_line": text, "hint": text}]
    begun = time.process_time()
    for status in (Status.LOAD_ERROR, Status.INCORRECT):
        feedback(failed(status, text, message=text, evidence=evidence, warnings=[text] * 10), source=source)
    feedback(failed(Status.COMPILE_ERROR, "compiler", message=text, evidence={"errors": errors}), source=source)
    assert time.process_time() - begun < 0.5


def test_nor_do_numbers_that_a_build_has_made_up():
    """A pattern for each of them, over a line that has them all, took 7 s."""
    numbers = [1000.5 + count for count in range(3500)]
    line = " , ".join(map(str, numbers))
    evidence = {"errors": [{"text": "x", "line": 3}], "e": [{"expected": number} for number in numbers]}
    begun = time.process_time()
    feedback(failed(Status.COMPILE_ERROR, "compiler", message=line, evidence=evidence), source=f"a\nb\nx # {line}\n")
    assert time.process_time() - begun < 0.2


def test_nor_does_a_source_of_millions_of_lines():
    begun = time.process_time()
    feedback(failed(Status.LOAD_ERROR, "e", evidence={"line": 2}), source="ab\n" * (4 << 20))
    assert time.process_time() - begun < 0.1


@pytest.mark.parametrize("made_up", ["10**400", "-(10**5000)", "1e308", "float('nan')", "float('-inf')", "True"])
def test_a_made_up_number_may_be_of_any_size(made_up):
    record = failed(Status.COMPILE_ERROR, "compiler", message="no", evidence={"expected": eval(made_up)})
    assert feedback(record).startswith("compile_error: compiler")


@QUICK
@given(st.lists(numbers, min_size=1, max_size=40), st.sampled_from(["{}", "x={},", "5-{}", "({}).", "{}.", "{}.7"]))
def test_none_of_many_right_values_is_told_in_any_part(expected, around):
    evidence = {"errors": [{"text": "x", "line": 2}], "e": [{"deep": [{"expected": number}]} for number in expected]}
    written = [around.format(repr(number)) for number in expected]
    record = failed(Status.COMPILE_ERROR, "compiler", message="no", evidence=evidence, warnings=written)
    text = feedback(record, 10_000, source="a\n" + "\n".join(written))
    for number in expected:
        for form in forms(number):
            assert not re.search(rf"(?<![\w.]){re.escape(form)}(?!\w)", text)


@pytest.mark.parametrize("blanks", range(20))
def test_no_cut_leaves_a_part_of_a_right_value(blanks):
    long = " " * (280 + blanks) + "1234.56789 " + "x" * 300
    record = failed(Status.LOAD_ERROR, "e", evidence={"line": 1, "expected": 1234.56789}, warnings=[long])
    text = feedback(record, 10_000, source=long)
    assert "12" not in text.replace("[not told]", "")


def test_of_a_long_line_the_beginning_is_quoted():
    text = feedback(failed(Status.LOAD_ERROR, "e", evidence={"line": 2}), source="a\nraise E  # " + "x" * 5000 + "\nb")
    lines = text.splitlines()
    assert lines[1] == "     1 | a"
    assert lines[2].startswith(">    2 | raise E  # xxx")
    assert lines[2].endswith("x…")
    assert len(lines[2]) < 320
    assert lines[3] == "     3 | b"


def test_of_a_long_line_that_is_a_whole_kernel_the_place_is_quoted():
    """As of a text in one line, with its ends of lines escaped."""
    errors = [{"text": "expected ';'", "line": 1, "source_line": "  int wrong = 7"}]
    source = "CODE = '" + r"int a;\n" * 400 + r"  int wrong = 7\n" + r"int b;\n" * 400 + "'\n"
    text = feedback(failed(Status.COMPILE_ERROR, "compiler", message="no", evidence={"errors": errors}), source=source)
    assert "int wrong = 7" in text
    assert len(text.splitlines()[2]) < 320


def test_the_compiler_s_first_error_is_told_with_its_hint():
    errors = [
        {"text": "expected ';'", "line": 3, "source_line": "int x", "hint": "end it"},
        {"text": "and more", "line": 9},
    ]
    record = failed(Status.COMPILE_ERROR, "compiler", message="a.py:3: expected ';'", evidence={"errors": errors})
    text = feedback(record)
    assert text.splitlines() == [
        "compile_error: compiler",
        "the compiler's first error, line 3: expected ';'",
        "int x",
        "hint: end it",
    ]


def test_a_pass_is_told_in_times():
    timing = {"clock": "host", "calls_per_burst": 1, "baseline_calls_per_burst": 1, "fixed_us": 0.0}
    timing |= {name: [] for name in ("candidate_us", "baseline_us", "candidate_claimed_us", "baseline_claimed_us")}
    record = passed(2.0, lo=1.9)
    changes = {"timing": Timing(**timing, floor_us=500.0, floor_bound="memory"), "sol_fraction": 0.5}
    text = feedback(records.msgspec.structs.replace(record, **changes))
    assert "speedup 2 over the baseline (eager), 95 % interval 1.9 to 2" in text
    assert "time of one call: 1 ms, the baseline's 2 ms" in text
    assert "0.5 ms, bound by memory; this candidate reaches 50% of that" in text


def test_a_negative_limit_is_refused():
    with pytest.raises(BadValue):
        feedback(passed(1.0), -1)


def test_of_published_records_each_has_its_text_and_none_a_right_value():
    seen = 0
    for path in sorted((Path(__file__).parents[2] / "results").rglob("records.jsonl")):
        for line in path.read_bytes().splitlines():
            record = records.decode(line)
            text = feedback(record)
            assert text.startswith(record.status)
            assert 0 < len(text) <= 2048
            assert "harness/" not in text
            assert "Traceback" not in text
            for name in ("first", "worst"):
                element = record.evidence.get(name)
                expected = element.get("expected") if isinstance(element, dict) else None
                if record.status is Status.INCORRECT and isinstance(expected, float):
                    seen += 1
                    assert not any(form in text.split() for form in forms(expected)), (record.candidate, text)
                    assert f" in place of {expected:.6g}" not in text
    assert seen > 100
