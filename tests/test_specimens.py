"""Every specimen says of itself what the harness must say of it, and lies where its row belongs."""

import re
from pathlib import Path

import pytest

from tests import specimens
from tests.specimens import CORPUS

CHEAT = "# {kind: cheat, row: clock, status: passed, twin: honest}"
HONEST = "# {kind: honest, row: clock, status: passed}"


@pytest.fixture
def corpus(tmp_path):
    """A corpus of these files (place -> first lines)."""

    def make(files):
        for place, text in files.items():
            path = tmp_path / "solutions" / place
            path.parent.mkdir(parents=True)
            path.write_text(f'{text}\n"""What it does."""\n')
        return tmp_path

    return make


def test_rows_lie_in_the_areas_that_the_readme_names():
    table = re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+) \|$", (CORPUS / "README.md").read_text(), re.MULTILINE)
    told = {(area, row) for area, rows in table for row in rows.split(", ")}
    assert told == {(one.area, one.row) for one in specimens.load().values()}


def test_a_head_may_take_several_lines_and_says_what_differs_on_a_card(corpus):
    head = CHEAT.replace("}", ",\n#  set: {build: {timeout_s: 8.0}}, cuda: {status: incorrect, twin: other}}")
    folder = corpus({"clock/toy/a/cheat.py": head, "x/toy/a/other.py": HONEST, "y/toy/a/honest.py": HONEST})
    one = specimens.load(folder)["cheat"]
    assert (one.area, one.problem, one.set.build) == ("clock", "toy/a", {"timeout_s": 8.0})
    assert (one.on("cpu").status, one.on("cpu").twin) == ("passed", "honest")
    assert (one.on("cuda").status, one.on("cuda").twin) == ("incorrect", "other")


@pytest.mark.parametrize(
    ("place", "head", "fault"),
    [
        ("clock/toy/a/cheat.py", "", "no proper head"),
        ("clock/toy/a/cheat.py", "# What it does.", "no proper head: Expected `object`"),
        ("clock/toy/a/cheat.py", "# {kind: cheat", "no proper head: while parsing"),
        ("clock/toy/a/cheat.py", "# {kind: cheat, row: clock}", "missing required field `status`"),
        ("clock/toy/a/cheat.py", CHEAT.replace("cheat", "joke"), "Invalid enum value 'joke'"),
        ("clock/toy/a/cheat.py", CHEAT.replace("passed", "fine"), "Invalid enum value 'fine'"),
        ("clock/toy/a/cheat.py", CHEAT.replace("row", "area: x, row"), "unknown field `area`"),
        ("clock/toy/a/cheat.py", CHEAT.replace("}", ", cuda: {row: x}}"), "unknown field `row`"),
        ("clock/toy/a/cheat.py", CHEAT.replace("}", ", set: {limits: {}}}"), "unknown field `limits`"),
        ("clock/toy/a/cheat.py", CHEAT.replace(", twin: honest", ""), "names no twin"),
        ("clock/toy/a/cheat.py", CHEAT.replace("twin: honest", "twin: nobody"), "is called nobody"),
        ("clock/toy/a/cheat.py", CHEAT.replace("twin: honest", "twin: cheat"), "is called cheat"),
        ("clock/toy/b/cheat.py", CHEAT, "no honest specimen of toy/b is called honest"),
        ("clock/toy/b/honest.py", HONEST, "two specimens are called honest"),
        ("toy/a/cheat.py", CHEAT, "does not lie at"),
    ],
)
def test_a_faulty_specimen_is_named(place, head, fault, corpus):
    with pytest.raises(ValueError, match=re.escape(fault)) as raised:
        specimens.load(corpus({"honest/toy/a/honest.py": HONEST, place: head}))
    assert Path(place).stem in str(raised.value)
