"""What commands print is there, however narrow a terminal says that it is."""

from pathlib import Path

import pytest

from harness.reports.terminal.consoles import Terminal

COMMANDS = Path(__file__).resolve().parents[2] / "harness/commands"


@pytest.mark.parametrize(("columns", "width"), [("0", 80), ("1", 80), ("19", 80), ("20", 20), ("100", 100), ("x", 80)])
def test_a_console_is_never_too_narrow_for_a_table(columns, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", "0")
    console = Terminal()
    assert (console.width, console.height > 0) == (width, True)
    console.print("shown")
    assert capsys.readouterr().out == "shown\n"


def test_all_commands_print_to_such_a_one():
    assert [path.name for path in COMMANDS.glob("*.py") if "rich.console" in path.read_text()] == []
