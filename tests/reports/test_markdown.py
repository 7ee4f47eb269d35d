import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.reports import markdown, text

# Letters that Markdown gives a meaning, in every combination.
tricky = st.text(alphabet="ab é1 \\`*_[]()<>!&;|~$#:/.-+=@w\n\x1b", min_size=1, max_size=24)
shared_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def cells(page: str) -> list[list[str]]:
    """What a reader sees of each table cell; a piece of markup other than text and code fails the test."""
    rows: list[list[str]] = []
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        if token.type in ("td_open", "th_open"):
            parts = tokens[index + 1].children or []
            assert {part.type for part in parts} <= {"text", "code_inline", "html_inline", "text_special"}, page
            assert {part.content for part in parts if part.type == "html_inline"} <= {"<br>", "<span>", "</span>"}, page
            rows[-1].append("".join(part.content for part in parts if "span" not in part.content))
    return rows


def test_leaderboard_is_held_still(records, manifest, golden):
    golden("leaderboard.md", markdown.leaderboard(records, manifest))


def test_an_unfinished_run_with_a_bare_manifest_still_reports(records):
    page = markdown.leaderboard(
        records, {"started_at": "2026-11-21T09:00:00Z", "environment": {"cuda": "", "torch": None}}
    )
    head = page.partition("## Summary")[0]
    assert head == "# Leaderboard\n\n- **Run**: 2026-11-21T09:00:00Z to now (not finished)\n\n"


def test_settings_that_change_what_a_number_means_are_said(records):
    config = {"allow": ["tf32"], "timing": {"cache": "warm"}, "check": {"stress": False}, "seed": 0}
    page = markdown.leaderboard(records, {"config": config})
    assert "- **Conditions**: lower precision allowed: tf32; warm inputs; no hard inputs; seed 0\n" in page
    usual = {"allow": [], "timing": {"cache": "cold"}, "check": {"stress": True}, "seed": None}
    assert "Conditions" not in markdown.leaderboard(records, {"config": usual})


def test_nothing_to_report_is_said():
    assert "No records yet." in markdown.leaderboard([], {})


@shared_fixtures
@given(words=tricky)
def test_candidates_words_are_shown_as_they_are(make, words):
    record = make("c", "incorrect", caption="", message=words, reason=words)
    *_, row = cells(markdown.leaderboard([record], {}))
    assert row[-1] == text.clean(words)
    assert row[2] == f"incorrect {text.clean(words)}".rstrip()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("see https://example.com/a", "see https<span>:</span>//example.com/a"),
        ("WWW.example.com", "WWW<span>.</span>example.com"),
        ("by @someone, a@b.example", "by <span>@</span>someone, a<span>@</span>b.example"),
        ("done :tada: :+1::100:", "done <span>:</span>tada: <span>:</span>+1:<span>:</span>100:"),
        ("fast.py:12: x @ y, std::max", "fast.py:12: x @ y, std::max"),
    ],
)
def test_github_makes_no_link_mention_or_emoji_of_words(words, shown):
    assert markdown.escape(words) == shown


@shared_fixtures
@given(words=tricky)
def test_names_stay_in_their_cell(make, words):
    *_, row = cells(markdown.leaderboard([make(words)], {}))
    assert row[1] == text.clean(words)
    assert len(row) == 9
