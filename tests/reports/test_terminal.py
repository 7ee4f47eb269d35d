import io
import re
import threading
import time

import pytest
from rich.console import Console

from harness.reports.terminal import Progress, leaderboard


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def plain(width: int) -> Console:
    return Console(width=width, force_terminal=False, file=io.StringIO(), color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_leaderboard_is_held_still(records, golden, width):
    console = plain(width)
    leaderboard(records, console)
    lines = [line.rstrip() for line in shown(console).splitlines()]
    assert max(map(len, lines)) <= width
    golden(f"leaderboard-{width}.txt", "\n".join(lines) + "\n")


def test_every_candidate_is_shown_if_wanted(records):
    console = plain(140)
    leaderboard(records, console)
    assert "2 candidates need a GPU that torch can use (--all shows each)" in shown(console)
    assert "split_wgmma" not in shown(console)
    console = plain(140)
    leaderboard(records, console, every=True)
    assert all(record.candidate in shown(console) for record in records)
    assert "--all" not in shown(console)


def test_a_group_of_which_nothing_can_run_is_a_heading_and_a_count(make):
    console = plain(100)
    leaderboard([make("c", "unsupported", reason="needs_cuda")], console)
    assert shown(console).splitlines()[:2] == [
        "attention/sdpa · default · float16 · baseline eager",
        "1 candidate needs a GPU that torch can use (--all shows each)",
    ]


def test_candidates_words_are_not_markup(make):
    console = Console(width=100, force_terminal=True, file=io.StringIO())
    leaderboard([make("[red]name[/]", caption="[link=http://x]\x1b[2J[/link] :tada:")], console)
    assert "[red]name[/]" in shown(console)
    assert "[link=http://x]?[2J[/link] :tada:" in shown(console)


def test_nothing_to_report_is_said():
    console = plain(80)
    leaderboard([], console)
    assert shown(console) == "No records yet.\n"


def test_plain_progress_is_a_line_an_event(make):
    console = plain(40)
    with Progress(console) as progress:
        progress.start(12, 2)
        progress.phase("cpu", "attention/sdpa small float16 composed", "evaluating")
        progress.finished(make("composed", variant="small", interval=(1.84, 1.8, 1.88), baseline_ms=0.758))
        progress.note("2 [pairs]\ndropped")
        progress.finished(make("broken", "compile_error", reason="compiler", message="k.py:3: error: no 'x'"))
    assert shown(console).splitlines() == [
        "12 jobs, 2 of them already finished",
        "[ 3/12] passed            attention/sdpa small float16 composed  1.84x [1.80, 1.88]  412 µs",
        "2 [pairs] dropped",
        "[ 4/12] compile_error     attention/sdpa default float16 broken  compiler  k.py:3: error: no 'x'",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_counts_every_verdict_once_from_many_threads(make, terminal):
    console = Console(width=200, file=Terminal() if terminal else io.StringIO())
    workers, jobs = 8, 25

    def work(number: int) -> None:
        for job in range(jobs):
            name = f"c{number}_{job}"
            progress.phase(f"slot-{number}", f"attention/sdpa default float16 {name}", "evaluating")
            progress.finished(make(name))

    with Progress(console) as progress:
        progress.start(workers * jobs, 0)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    verdicts = re.findall(r"\[ *(\d+)/200\].*?(c\d+_\d+)", shown(console))
    assert [int(place) for place, _ in verdicts] == list(range(1, 201))
    assert len({name for _, name in verdicts}) == 200


def test_a_quiet_log_says_what_is_running():
    console = plain(80)
    with Progress(console, quiet_s=0.05) as progress:
        progress.phase("build-0", "p v f waiting", "building")
        progress.phase("cuda:0", "p v f slow", "evaluating")
        progress.phase("cuda:1", "p v f gone", "evaluating")
        progress.phase("cuda:1", "", "")
        deadline = time.monotonic() + 20
        while "slow" not in shown(console) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert shown(console).splitlines()[:2] == [
        "still building on build-0: p v f waiting (0 s)",
        "still evaluating on cuda:0: p v f slow (0 s)",
    ]
    assert "gone" not in shown(console)


def test_a_colour_log_that_is_no_terminal_gets_plain_lines(make):
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    with Progress(console) as progress:
        progress.start(1, 0)
        progress.finished(make("c"))
    assert "\x1b" not in shown(console)


def test_live_display_shows_slots_while_they_work_and_vanishes(make, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(width=80, file=Terminal(), color_system=None)
    screen = Console(width=80, file=io.StringIO())
    with Progress(console) as progress:
        progress.start(4, 1)
        progress.phase("build-0", "attention/sdpa default float16 next", "building")
        progress.phase("build-1", "attention/sdpa default float16 now", "building")
        progress.phase("cpu", "attention/sdpa default float16 now", "evaluating")
        screen.print(progress._display())
        progress.finished(make("now"))
        screen.print(progress._display())
    before, after = shown(screen).split("jobs")[1:]
    assert "1 building" in before
    assert re.search(r"build-0 +building +attention/sdpa default float16 next +0 s", before)
    assert re.search(r"cpu +evaluating +attention/sdpa default float16 now +0 s", before)
    assert "build-1" not in before
    assert "build-0" in after
    assert "cpu" not in after
    # The cursor comes back.
    assert shown(console).rfind("\x1b[?25h") > shown(console).rfind("\x1b[?25l") >= 0
