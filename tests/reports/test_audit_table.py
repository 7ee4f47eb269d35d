"""An audit's reports: whatever a problem's own code has said of itself."""

import io

from rich.console import Console

from harness.records import Outcome, Status
from harness.reports.terminal import audit_table
from harness.reports.terminal.audit_table import AuditRow

SAID = "\x1b[2J[red]x[/] | <b> `y` \u202e" + "z" * 100_000
ROW = AuditRow(
    problem="a/[bold]b|`c`",
    variant="default",
    precision="float32",
    fault=Outcome(status=Status.INVALID_REFERENCE, reason="exception", message=SAID),
)


def test_what_inputs_promise_is_listed():
    row = AuditRow(problem="a/b", variant="default", precision="float32", tried=9, promises=["input[0]: symmetric"])
    assert row.verdict == "sound"
    assert audit_table.line(row) == "all 9 controls as expected; promises input[0]: symmetric"
    assert "| a/b |" in audit_table.page([row]).replace("`", "")


def test_a_message_steers_neither_terminal_nor_page():
    console = Console(file=io.StringIO(), width=200)
    audit_table.show([ROW], console)
    shown, page = console.file.getvalue(), audit_table.page([ROW])
    for text in (shown, page):
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert len(text) < 3000
    assert "[red]x[/]" in shown
    assert "<b>" not in page.replace("\\<b", "")
    (line,) = [line for line in page.splitlines() if "unusable |" in line]
    assert line.replace("\\|", "").count("|") == 4
