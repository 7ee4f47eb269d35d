import io
import re
import threading
import time
from typing import Any

import pytest
from rich.console import Console

from harness.reports.terminal import progress as progress_module
from harness.reports.terminal.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def plain(width: int) -> Console:
    return Console(width=width, force_terminal=False, file=io.StringIO(), color_system=None)


def job(candidate: str, problem: str = "attention/sdpa") -> tuple[str, str, str, str]:
    return problem, "default", "float16", candidate


def jobs(name: str, count: int) -> list[tuple[str, str, str, str]]:
    return [job(f"{name}{number}") for number in range(count)]


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_progress_is_a_line_an_event(make):
    console = plain(40)
    with Progress(console) as progress:
        progress.start(jobs("c", 12), [make("c0"), make("c1")])
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


def test_what_the_machine_lacks_is_one_line_however_many_lack_it(make):
    console = plain(80)
    with Progress(console) as progress:
        progress.start([job("a"), job("b"), job("c")])
        for name in "ab":
            progress.finished(make(name, status="unsupported", reason="needs_cuda"))
        progress.finished(make("c", status="crashed", reason="signal"))
    lines = shown(console).splitlines()
    assert lines[0] == "3 jobs"
    assert lines[1] == "candidates that need a GPU that torch can use are counted, and not listed here"
    assert lines[2].startswith("[3/3] crashed")
    assert len(lines) == 3


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_counts_every_verdict_once_from_many_threads(make, terminal):
    console = Console(width=200, file=Terminal() if terminal else io.StringIO())
    workers, count = 8, 25

    def work(number: int) -> None:
        for one in range(count):
            name = f"c{number}_{one}"
            progress.phase(f"slot-{number}", f"attention/sdpa default float16 {name}", "evaluating")
            progress.finished(make(name))

    with Progress(console) as progress:
        progress.start([job(f"c{number}_{one}") for number in range(workers) for one in range(count)])
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
        progress.start(jobs("c", 1))
        progress.finished(make("c"))
    assert "\x1b" not in shown(console)


class Watched:
    """A run's progress in a terminal, and the view as it is at a moment."""

    def __init__(self, width: int = 80, height: int = 24, **colours: Any) -> None:
        self.console = Console(width=width, height=height, file=Terminal(), color_system=None)
        self.screen = {"width": width, **colours}
        self.progress = Progress(self.console)

    def view(self) -> str:
        screen = Console(file=io.StringIO(), **self.screen)
        screen.print(self.progress._view())
        return "\n".join(line.rstrip() for line in shown(screen).splitlines())


@pytest.fixture
def at_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("at_a_terminal")
def test_the_view_has_a_line_for_each_slot_and_vanishes(make):
    watched = Watched()
    with watched.progress as progress:
        progress.start([job("now"), job("next"), job("old"), job("last")], [make("old")])
        progress.phase("builder 0", "attention/sdpa default float16 next", "building")
        progress.phase("builder 1", "attention/sdpa default float16 now", "building")
        progress.phase("cpu", "attention/sdpa default float16 now", "timing ±1.2% → 0.5%")
        before = watched.view()
        progress.finished(make("now"))
        after = watched.view()
    assert re.search(r"^cpu +timing ±1.2% → 0.5% +now +attention/sdpa default float16 +0 s$", before, re.M)
    assert re.search(r"^builder 0 +building +next +attention/sdpa default float16 +0 s$", before, re.M)
    assert "builder 1" not in before
    assert before.index("cpu ") < before.index("builder 0")
    assert "cpu " not in after
    assert "2/4 jobs" in after
    # The cursor comes back.
    said = shown(watched.console)
    assert said.rfind("\x1b[?25h") > said.rfind("\x1b[?25l") >= 0


@pytest.mark.usefixtures("at_a_terminal")
def test_what_a_phase_has_reached_does_not_begin_it_anew(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    watched = Watched()
    watched.progress.start([job("a")])
    watched.progress.phase("cuda:0", "attention/sdpa default float16 a", "timing")
    now = 107.0
    watched.progress.phase("cuda:0", "attention/sdpa default float16 a", "timing ±3% → 0.5%")
    assert re.search(r"timing ±3% → 0.5% +a .* 7 s$", watched.view(), re.M)
    watched.progress.phase("cuda:0", "attention/sdpa default float16 a", "KernelBench's rule")
    assert re.search(r"KernelBench's rule +a .* 0 s$", watched.view(), re.M)


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize("width", [60, 80, 160])
def test_any_number_of_slots_fits_the_terminal(make, width):
    watched = Watched(width, height=12)
    watched.progress.start(jobs("with_quite_a_long_name_", 40))
    for number in range(20):
        title = f"attention/sdpa default float16 with_quite_a_long_name_{number}"
        watched.progress.phase(f"cuda:0 lane {number}", title, "timing ±0.75% → 0.5%")
    for number in range(20, 24):
        title = f"attention/sdpa default float16 with_quite_a_long_name_{number}"
        watched.progress.phase(f"builder {number}", title, "building")
    lines = watched.view().splitlines()
    assert len(lines) < 12
    assert max(map(len, lines)) <= width
    assert lines[-1] == "and 14 timing, 4 building"
    assert [line.split()[2] for line in lines[1:-1] if line.startswith("cuda")] == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.usefixtures("at_a_terminal")
def test_the_view_counts_verdicts_and_problems(make):
    watched = Watched(width=160)
    lacking = {"status": "unsupported", "reason": "needs_cuda"}
    several = [*jobs("c", 2), job("c", "p/wrong"), job("c", "p/cuda"), job("c", "p/begun"), job("d", "p/begun")]
    with watched.progress as progress:
        progress.start([*several, job("c", "p/later")])
        progress.finished(make("c0"))
        progress.finished(make("c1", "incorrect"))
        progress.finished(make("c", "incorrect", problem="p/wrong"))
        progress.finished(make("c", problem="p/cuda", **lacking))
        progress.finished(make("c", problem="p/begun"))
        view = watched.view()
        progress.phase("cpu", "p/later default float16 c", "load")
        assert "· 2 under way" in watched.view()
    assert "verdicts  2 passed · 2 incorrect · 1 unsupported" in view
    words = "1 solved · 1 without a right candidate · 1 not for this machine · 1 under way · 1 to come"
    assert f"problems  {words}" in view
    # What this machine lacks is counted, not listed.
    assert "p/cuda" not in shown(watched.console)


@pytest.mark.usefixtures("at_a_terminal")
def test_the_time_left_comes_from_the_verdicts_so_far(make, monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    watched = Watched()
    progress = watched.progress
    progress.start(jobs("c", 10))
    progress.phase("builder 0", "attention/sdpa default float16 c0", "building")
    progress.phase("cpu", "waiting for builds before timing on the CPU", "waiting for 2 builds")
    now = 160.0
    progress.phase("cuda:0", "attention/sdpa default float16 c0", "load")
    # No judge had it, so that it says nothing about the others.
    progress.finished(make("c9", "compile_error"))
    now = 170.0
    progress.finished(make("c0", phases_s={"load": 1.0}))
    assert "left" not in watched.view()
    now = 180.0
    progress.finished(make("c1", phases_s={"load": 1.0}))
    assert "3/10 jobs · 1 min 20 s · about 1 min 10 s left" in watched.view()
    now = 184.0
    assert "about 1 min 06 s left" in watched.view()
    now = 500.0
    assert "about 1 min 00 s left" in watched.view()


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize(("value", "plainly"), [("true", True), ("1", True), ("false", False), ("", False)])
def test_a_terminal_of_a_ci_system_gets_plain_lines(make, monkeypatch, value, plainly):
    monkeypatch.setenv("CI", value)
    console = Console(width=80, file=Terminal())
    with Progress(console) as progress:
        progress.start(jobs("c", 1))
        progress.phase("cpu", "attention/sdpa default float16 c0", "timing")
        progress.finished(make("c0"))
    assert ("\x1b[?25l" not in shown(console)) == plainly
    assert (shown(console).splitlines()[0] == "1 job") == plainly


@pytest.mark.usefixtures("at_a_terminal")
def test_without_colours_the_view_says_the_same(make, monkeypatch):
    colours = {"force_terminal": True, "color_system": "standard"}

    def view() -> str:
        watched = Watched(**colours)
        watched.progress.start(jobs("c", 3))
        watched.progress.phase("cpu", "attention/sdpa default float16 c1", "timing")
        watched.progress.finished(make("c0", "incorrect"))
        return watched.view()

    coloured = view()
    monkeypatch.setenv("NO_COLOR", "1")
    plainly = view()
    assert re.search(r"\x1b\[[\d;]*3[1-7]m", coloured)
    assert not re.search(r"\x1b\[[\d;]*(3[1-7]|9[1-7])m", plainly)

    # But for the bar, of which rich shows the rest by its colour alone.
    assert without_styles(coloured)[1:] == without_styles(plainly)[1:]


def without_styles(said: str) -> list[str]:
    return re.sub(r"\x1b\[[\d;]*m", "", said).splitlines()
