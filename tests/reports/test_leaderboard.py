import io

import pytest
from rich.console import Console

from harness.records import KernelUse, Provenance
from harness.reports.terminal import leaderboard


def plain(width: int) -> Console:
    return Console(width=width, force_terminal=False, file=io.StringIO(), color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_leaderboard_is_held_still(records, golden, width):
    console = plain(width)
    leaderboard.show(records, console)
    lines = [line.rstrip() for line in shown(console).splitlines()]
    assert max(map(len, lines)) <= width
    golden(f"leaderboard-{width}.txt", "\n".join(lines) + "\n")


def test_every_candidate_is_shown_if_wanted(records):
    console = plain(140)
    leaderboard.show(records, console)
    assert "2 candidates need a GPU that torch can use (--all shows each)" in shown(console)
    assert "split_wgmma" not in shown(console)
    console = plain(140)
    leaderboard.show(records, console, every=True)
    assert all(record.candidate in shown(console) for record in records)
    assert "--all" not in shown(console)


def test_a_group_of_which_nothing_can_run_is_a_heading_and_a_count(make):
    console = plain(100)
    leaderboard.show([make("c", "unsupported", reason="needs_cuda")], console)
    assert shown(console).splitlines()[:2] == [
        "attention/sdpa · default · float16 · baseline eager",
        "1 candidate needs a GPU that torch can use (--all shows each)",
    ]


def test_candidates_words_are_not_markup(make):
    console = Console(width=100, force_terminal=True, file=io.StringIO())
    leaderboard.show([make("[red]name[/]", caption="[link=http://x]\x1b[2J[/link] :tada:")], console)
    assert "[red]name[/]" in shown(console)
    assert "[link=http://x]\N{REPLACEMENT CHARACTER}[2J[/link] :tada:" in shown(console)


def test_of_thousands_the_best_of_each_problem_are_shown_and_the_rest_is_counted(make):
    many = [
        make(f"c{one}", problem=f"set/p{problem:03}", interval=(float(one),) * 3)
        for problem in range(50)
        for one in range(1, 101)
    ]
    console = plain(100)
    leaderboard.show(many, console)
    lines = shown(console).splitlines()
    assert sum(line.startswith(("1  c", "2  c")) for line in lines) == leaderboard.FEWER_ROWS
    assert lines[0].startswith("set/p000 ")
    assert [line.split()[1] for line in lines[3:5]] == ["c100", "c99"]
    assert lines.count("98 more candidates (--all shows each)") == 50
    assert any(line.startswith("5000 candidates: 5000 passed.") for line in lines)
    console = plain(100)
    leaderboard.show(many[: leaderboard.MOST_ROWS], console)
    assert "--all" not in shown(console)


def test_of_thousands_of_problems_the_first_are_shown_and_the_rest_is_counted(make):
    many = [make("only", problem=f"set/p{problem:04}") for problem in range(1000)]
    console = plain(100)
    leaderboard.show(many, console)
    assert shown(console).count("baseline eager") == leaderboard.MOST_ROWS
    assert "\n750 more problems with 750 candidates (--all shows each)\n" in shown(console)
    console = plain(100)
    leaderboard.show(many, console, every=True)
    assert shown(console).count("baseline eager") == 1000
    assert "--all" not in shown(console)


def test_nothing_to_report_is_said():
    console = plain(80)
    leaderboard.show([], console)
    assert shown(console) == "No records yet.\n"


def test_a_reason_has_room_where_no_candidate_passed(make):
    console = plain(80)
    leaderboard.show([make("c", "incorrect", reason="mismatch:few_elements", error_ratio=2.0)], console)
    (line,) = [line for line in shown(console).splitlines() if "mismatch" in line]
    assert line.split() == ["c", "incorrect", "·", "mismatch:few_elements", "2"]


def test_records_of_another_version_cannot_move_the_cursor(make):
    kernel = KernelUse(name="k", kind="cublas", op="\x1b[2J", device_us=1.0)
    raw = make("c", provenance=Provenance(own_share=0.5, device_us=1.0, shares={"cublas": 0.5}, kernels=[kernel]))
    console = plain(140)
    leaderboard.show([raw], console)
    assert "cublas 50%" in shown(console)
    assert "\x1b" not in shown(console)
