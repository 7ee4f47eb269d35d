"""No name from outside leaves the folder, hides in it, is a pattern, or is another's."""

import re
from pathlib import PurePath

from hypothesis import given
from hypothesis import strategies as st

from harness.packs.names import LONGEST, Names, safe

NASTY = [
    "",
    ".",
    "..",
    "/",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "C:\\x",
    "a\0b",
    "_x",
    ".x",
    "-rf",
    "*",
    "[a]",
    "~",
    "é",
]
NASTY += ["\ud800", "\u202egnp", "x" * 10_000, "baseline:eager", "con\n", "19_ReLU.py", "a.b", "x-~0"]
RAW = st.one_of(st.sampled_from(NASTY), st.text(), st.text(alphabet="./\\\0\ud800é_-a", max_size=12))


@given(RAW)
def test_a_name_is_one_plain_part_of_a_path(raw):
    name = safe(raw)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name)
    assert len(name) <= LONGEST
    assert PurePath("out", name).parts == ("out", name)


@given(RAW, RAW)
def test_two_names_stay_two(one, other):
    assert (safe(one) == safe(other)) == (one == other)


@given(st.lists(st.sampled_from(["a", "A", "a_2", "A_2", "b", "a_2_2"]), max_size=30))
def test_no_file_takes_the_place_of_another(wanted):
    names = Names()
    given_names = [names.free("folder", name).casefold() for name in wanted]
    assert len(set(given_names)) == len(wanted)


def test_a_plain_name_is_kept():
    assert safe("13_Matmul_for_symmetric_matrices_") == "13_Matmul_for_symmetric_matrices_"
