"""What candidates have us print is no command to the service that runs us."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.commands.streams import Uncommanding

# As the agents of GitHub, Azure Pipelines and TeamCity look for them.
COMMANDS = (re.compile(r"^\s*::"), re.compile(r"##\["), re.compile(r"##[\w.]+\["))
PIECES = st.sampled_from(
    [*"#:[] \t\r\n", "##", "::", "vso", "task.complete", "teamcity", "\x85", "\u00a0", "é", "debug"]
)


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6))
def test_no_line_is_a_command_and_nothing_but_spaces_is_added(texts):
    shown = io.StringIO(newline="")
    stream = Uncommanding(shown)
    for text in texts:
        print(text, end="", file=stream)
    stream.flush()
    for line in re.split(r"[\r\n]", shown.getvalue()):
        assert not any(command.search(line) for command in COMMANDS), line
    assert shown.getvalue().replace(" ", "") == "".join(texts).replace(" ", "")


@pytest.mark.parametrize("text", ["std::vector<at::Tensor>", "a ## b", "#[derive]", "### [1, 2]", "", "[[1]]: #1"])
def test_all_else_stays(text):
    shown = io.StringIO()
    print(text, file=Uncommanding(shown), flush=True)
    assert shown.getvalue() == f"{text}\n"


def test_what_is_flushed_in_the_middle_of_a_line_is_there():
    shown = io.StringIO()
    stream = Uncommanding(shown)
    print("so far", end="", file=stream)
    assert shown.getvalue() == ""
    print(end="", file=stream, flush=True)
    assert shown.getvalue() == "so far"
