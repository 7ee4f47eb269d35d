"""Blocks of made-up Markdown: what was put in comes out, whatever is around it, and nothing is found twice."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.packs.fences import blocks

SIGN = st.sampled_from(["`", "~"])
LINE = st.text(alphabet=st.characters(exclude_characters="`~\n\r", exclude_categories=["Cs"]), max_size=20)
BODY = st.lists(LINE, max_size=5).map("\n".join)
TAG = st.sampled_from(["", "python", "py", "c++", "cuda", "python title=x"])


@given(st.lists(st.tuples(BODY, SIGN, st.integers(3, 6), TAG, BODY), max_size=6))
def test_whole_blocks_come_out_as_they_were(parts):
    text = "".join(f"{prose}\n{sign * count}{tag}\n{body}\n{sign * count}\n" for prose, sign, count, tag, body in parts)
    found = list(blocks(text))
    assert [block.text for block in found] == [body for *_, body in parts]
    assert not any(block.fault for block in found)
    lines = text.split("\n")
    assert ["\n".join(lines[block.first - 1 : block.last]) for block in found] == [body for *_, body in parts]


@given(st.text(alphabet="`~ \n\tapy", max_size=200))
def test_any_text_has_blocks_of_its_own_lines(text):
    last = 0
    for block in blocks(text):
        assert block.first > last
        assert last <= block.last <= text.count("\n") + 1
        last = block.last


def test_a_longer_fence_holds_a_shorter_one():
    (block,) = blocks("````markdown\n```python\nx = 1\n```\n````\n")
    assert block.text == "```python\nx = 1\n```"


def test_a_block_in_a_list_loses_the_lists_indentation():
    (block,) = blocks("1. First:\n   ```python\n   if x:\n       y = 1\n\n   ```\n")
    assert block.text == "if x:\n    y = 1\n"


def test_a_fence_that_is_never_closed_is_said():
    first, last = blocks("```python\nx = 1\nand then\n```python\ny = 1\n")
    assert (first.text, first.fault) == ("x = 1\nand then", "another fence opens before it is closed")
    assert last.fault == "its fence is never closed"


def test_a_fence_for_python_may_follow_a_sign_on_its_line():
    (block,) = blocks("thought\n<channel|>```python\nx = 1\n```\nsee ```this\n")
    assert (block.text, block.fault) == ("x = 1", "")


def test_code_within_a_line_is_no_fence():
    assert list(blocks("```x = 1``` is code\n")) == []


@pytest.mark.parametrize("piece", ["`", "```\n", "```python\n", " ", "~~~ ", "\n", "``` ` "])
def test_time_is_in_proportion_to_length(piece):
    begin = time.monotonic()
    assert sum(1 for _ in blocks(piece * (1_000_000 // len(piece)))) >= 0
    assert time.monotonic() - begin < 20
