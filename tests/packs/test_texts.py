"""What is taken of a model's answer, and what is left and why."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.packs import texts as ours
from harness.packs.files import Unusable
from harness.packs.texts import Attempt, PassedOver
from tests.packs.conftest import MODEL, NEW, SameProcess

TRANSCRIPT = Path(__file__).parent / "data/transcript.md"
NUMBERED = st.integers(0, 9).map(lambda number: NEW.replace("min=0", f"min={number}"))
PROSE = st.text(alphabet=st.characters(exclude_characters="`~\r", exclude_categories=["Cs"]), max_size=60)


def fenced(code: str, fence: str = "```", tag: str = "python") -> str:
    return f"{fence}{tag}\n{code}{fence}\n"


def taken(found) -> list[str]:
    return [one.code.decode() for one in found if isinstance(one, Attempt)]


def reasons(found) -> list[str]:
    return [one.reason for one in found if isinstance(one, PassedOver)]


@given(st.lists(st.tuples(PROSE, NUMBERED, st.sampled_from(["```", "~~~", "`````"])), min_size=1, max_size=5), PROSE)
@settings(deadline=None, max_examples=50)
def test_the_last_of_several_blocks_is_taken_whatever_is_between(parts, end):
    text = "".join(f"x {prose}\n{fenced(code, fence)}" for prose, code, fence in parts) + f"x {end}"
    assert taken(ours.attempts(text, SameProcess(), every=False)) == [parts[-1][1]]
    each = taken(ours.attempts(text, SameProcess(), every=True))
    assert each == list(dict.fromkeys(code for _, code, _ in parts))


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
    | st.lists(st.sampled_from(["```", "\n", "```python\n", NEW, MODEL, "x"])).map("".join)
)
@settings(deadline=None)
def test_any_text_is_taken_or_left_with_a_reason(text):
    found = ours.attempts(text, SameProcess(), every=True)
    assert found
    for one in found:
        assert one.reason if isinstance(one, PassedOver) else b"ModelNew" in one.code


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("class ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n", "it imports nothing"),
        (NEW.partition("    def")[0] + "    ...\n", "its ModelNew has no forward that does anything"),
        (NEW.partition("        return")[0] + "        ...\n", "its ModelNew has no forward that does anything"),
        (MODEL, "it is the problem"),
        ("from mine import ModelNew\nprint(ModelNew())\n", "it defines no ModelNew"),
        (NEW + "def broken(:\n", "it is no Python: line 8: "),
        ("int x; // ModelNew\n", "it is no Python: line 1: "),
        ("pip install torch\n", "it does not mention ModelNew"),
    ],
)
def test_a_block_that_cannot_stand_alone_is_left(block, reason, texts):
    found = ours.attempts(f"So:\n{fenced(block)}", texts, every=True)
    assert taken(found) == []
    assert reasons(found)[0].startswith(reason)


def test_a_function_that_makes_the_module_is_a_candidate(texts):
    code = f"{NEW.replace('ModelNew', 'Own')}\n\ndef ModelNew(*sizes):\n    return Own(*sizes)\n"
    assert taken(ours.attempts(fenced(code), texts, every=False)) == [code]


def test_an_empty_answer_is_called_that(texts):
    assert reasons(ours.attempts(" \n", texts, every=True)) == ["it is empty"]


def test_an_unfinished_last_version_does_not_hide_the_one_before(texts):
    found = ours.attempts(f"Draft:\n{fenced(NEW)}Final:\n```python\n{NEW[:60]}", texts, every=False)
    assert taken(found) == [NEW]
    assert reasons(found) == ["its fence is never closed"]


def test_a_block_of_nothing_has_no_lines(texts):
    (found,) = ours.attempts("Here:\n```", texts, every=True)
    assert found.block == "block 1 of 1 (nothing behind line 2)"


def test_a_prompts_example_is_not_the_answer(texts):
    example, other = fenced(MODEL.replace("relu", "tanh")), NEW.replace("clamp(min=0)", "tanh()")
    text = f"For example:\n{example}becomes\n{fenced(other)}Now do\n{fenced(MODEL)}"
    assert taken(ours.attempts(text, texts, every=True)) == []
    (answer,) = [one for one in ours.attempts(f"{text}Sure:\n{fenced(NEW)}", texts, True) if isinstance(one, Attempt)]
    assert (answer.code.decode(), answer.reference.decode()) == (NEW, MODEL)


def test_a_problem_that_is_said_again_parts_nothing(texts):
    text = f"{fenced(MODEL)}Draft:\n{fenced(NEW)}Again, for\n{fenced(MODEL)}I say:\n{fenced(NEW.replace('0', '1'))}"
    found = [one for one in ours.attempts(f"Do\n{text}", texts, every=True) if isinstance(one, Attempt)]
    assert len(found) == 2
    assert {one.reference.decode() for one in found} == {MODEL}


def test_problem_and_candidate_in_one_text_are_parted(texts):
    found = ours.code(f"{MODEL}\n\nSOURCE = 'x'\n\n\n{NEW}", texts)
    assert found.reference.decode() == MODEL
    assert found.code.decode().endswith(NEW)
    (block,) = ours.attempts(f"Here:\n{fenced(MODEL + NEW)}", texts, every=False)
    assert block.reference.decode() == MODEL


def test_problem_and_candidate_that_no_line_parts_are_named(texts):
    found = ours.code(NEW + MODEL, texts)
    assert not found.reference
    assert found.why == ours.NO_LINE


def test_too_many_blocks_are_refused_before_each_is_read(texts):
    with pytest.raises(Unusable, match="more than 1000 blocks"):
        ours.attempts("hm:\n" + fenced("get_inputs ModelNew (\n") * 1001, texts, every=True)


def test_a_long_transcript_has_the_samples_that_a_reader_counts(texts):
    """Counted by hand: its own first lines say which attempts can stand alone."""
    text = TRANSCRIPT.read_text()
    each = ours.attempts(text, texts, every=True)
    assert len(each) == 14
    assert [code.splitlines()[0] for code in taken(each)] == [
        '"""Attempt one."""',
        '"""Attempt three, in a list."""',
        '"""Attempt four, in tildes."""',
        '"""Attempt seven, the last."""',
    ]
    assert all(b"class Model(nn.Module)" in one.reference for one in each if isinstance(one, Attempt))
    assert [code.splitlines()[0] for code in taken(ours.attempts(text, texts, False))] == [
        '"""Attempt seven, the last."""'
    ]
    assert sorted(reasons(each)) == sorted(
        [
            "it is the problem",
            "it comes before the text's last problem: an example, or for another problem",
            "it is the problem",
            "it does not mention ModelNew",
            "another fence opens before it is closed",
            "its ModelNew has no forward that does anything",
            "it imports nothing",
            "it does not mention ModelNew",
            "the same as block 5 of 14 (lines 74 to 89)",
            "its fence is never closed",
        ]
    )
