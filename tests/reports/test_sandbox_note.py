"""What a report says of a run whose sandbox was off or incomplete."""

import io

import pytest
from rich.console import Console

from harness.reports import markdown, text
from harness.reports.terminal import leaderboard

OFF = {"config": {"sandbox": "off"}, "environment": {"sandbox": [], "sandbox_missing": {"landlock": "switched off"}}}
PARTIAL = {"config": {"sandbox": "auto"}, "environment": {"sandbox": ["seccomp"], "sandbox_missing": {"user": "why"}}}
RESUMED = {
    "config": {"sandbox": "auto"},
    "environment": {"sandbox": ["user"], "sandbox_missing": {}},
    "parts": [
        {"after_line": 0, "sandbox_mode": "off", "sandbox_missing": {"user": "switched off"}},
        {"after_line": 2, "sandbox_mode": "auto", "sandbox_missing": {}},
        {"after_line": 5, "sandbox_mode": "auto", "sandbox_missing": {}},
    ],
}
WHOLE = {"config": {"sandbox": "auto"}, "environment": {"sandbox": ["user"], "sandbox_missing": {}}}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [(OFF, "was off"), (PARTIAL, "incomplete, without user"), (WHOLE, ""), ({}, ""), ({"environment": None}, "")],
)
def test_only_a_missing_sandbox_is_worth_a_note(manifest, words):
    note = text.sandbox_note(manifest)
    assert words in note
    assert bool(note) is bool(words)


def test_parts_that_differ_are_told_apart():
    note = text.sandbox_note(RESUMED)
    assert note == f"the sandbox changed during the run: {text.OFF} from record 1 on; complete from record 3 on"
    assert text.sandbox_note(RESUMED | {"parts": RESUMED["parts"][1:]}) == ""


def test_both_reports_show_it(records):
    console = Console(file=io.StringIO(), width=120)
    leaderboard.show(records, console, OFF)
    assert "note: the sandbox was off" in console.file.getvalue()
    assert "- **Sandbox**: seccomp; the sandbox was incomplete" in markdown.leaderboard(records, PARTIAL)


def test_words_from_a_manifest_cannot_move_the_cursor():
    assert "\x1b" not in text.sandbox_note({"environment": {"sandbox_missing": {"\x1b[2J": "x"}}})
