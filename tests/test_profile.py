"""An inspection from the job to the table, by tools that are made up: the real ones need a card."""

import io
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness import cli, profile, session
from harness.commands import profile as command
from harness.config import Config
from harness.environment import choose_devices
from harness.errors import UsageError
from harness.instruments import nsight, tools
from harness.instruments.insight import Insight
from harness.instruments.nsight import Launch
from harness.instruments.sanitizer import Finding, Place
from harness.instruments.tools import Instrument
from harness.records import Record, Status, Timing
from harness.reports.terminal import profile_table
from harness.runner import inspector
from harness.sandbox import probe
from harness.store import run_directory

ROOT = Path(__file__).resolve().parents[1]
CPU = choose_devices("cpu")[0]
PAGE = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","nsecond"\n"0","rows(float *)","2,500"\n'
# As ncu: `--import` prints a page; otherwise it runs what follows its options and leaves a report.
NCU = f"""#!{sys.executable}
import subprocess, sys
if "--import" in sys.argv:
    sys.stdout.write({PAGE!r})
else:
    code = subprocess.run(sys.argv[sys.argv.index("--export") + 2:]).returncode
    open("report.ncu-rep", "w").write("kept")
    sys.exit(code)
"""
MEMCHECK = f"""#!{sys.executable}
import subprocess, sys
print("========= COMPUTE-SANITIZER", flush=True)
subprocess.run(sys.argv[sys.argv.index("--print-limit") + 2:])
print("========= Invalid __global__ write of size 4 bytes")
print("=========     at add_one(at::Tensor)+0x50 in main.cpp:LINE")
print("=========     by thread (1,0,0) in block (0,0,0)")
"""
PLAIN = """import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(columns))

    def forward(self, x):
        print("called")
        BODY
        return torch.relu(x) * self.scale
"""
COMPILED = (
    '''from torch.utils.cpp_extension import load_inline

CPP = r"""
at::Tensor times(const at::Tensor& x, const at::Tensor& scale) {
  return at::relu(x) * scale;  // here
}
"""
extension = load_inline("times", CPP, functions=["times"])
'''
    + PLAIN
)


@pytest.fixture
def tool():
    """Makes a tool; in a folder that a candidate's user may read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)

    def make(name: str, source: str) -> str:
        path = folder / name
        path.write_text(source)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH | 0o444)
        return str(path)

    yield make
    shutil.rmtree(folder)


@pytest.fixture
def look(tmp_path):
    """Runs an instrument on a candidate whose forward has one more line."""

    def run(instrument: Instrument, body: str = "pass", source: str = PLAIN, without: Sequence[str] = ()) -> Insight:
        if not (tmp_path / "problems").is_dir():
            cli.main(["new", "problem", "toy/scaled"])
        path = tmp_path / "solutions/toy/scaled/times.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.replace("BODY", body))
        problem = str(tmp_path / "problems/toy/scaled.py")
        config = Config(problems=[problem], solutions=[str(path)], variants=["small"], device="cpu")
        (job,) = session.plan(config).jobs
        return profile.run(job, CPU, instrument, config, tmp_path / "out", list(without), 120.0)

    return run


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_profile_is_kept_with_its_figures(tool, look, monkeypatch, tmp_path):
    monkeypatch.setattr(tools, "find", lambda name: tool(name, NCU))
    insight = look(tools.nsight())
    assert insight.fault == insight.failed == ""
    assert insight.launches == [Launch(kernel="rows(float *)", figures={"time": 2.5})]
    assert Path(insight.report).read_text() == "kept"
    # Once to load what is loaded once, and once for the profiler.
    assert Path(insight.log).read_text().count("called") == 2
    (kept,) = (tmp_path / "out/profile").glob("*.json")
    assert msgspec.json.decode(kept.read_bytes(), type=Insight) == insight
    # The next one takes its place.
    assert look(tools.nsight()).report == insight.report


@pytest.mark.slow
def test_a_finding_has_the_line_of_the_candidates_own_file(tool, look, monkeypatch):
    line = 1 + next(at for at, text in enumerate(COMPILED.splitlines()) if "here" in text)
    # torch writes one line, its include, before the text.
    source = MEMCHECK.replace("LINE", "4")
    monkeypatch.setattr(tools, "find", lambda name: tool(name, source))
    insight = look(tools.sanitizer("memcheck"), source=COMPILED)
    (finding,) = insight.findings
    (place,) = finding.places
    assert finding.text == "Invalid __global__ write of size 4 bytes"
    assert (place.own_line, place.source_line) == (line, "return at::relu(x) * scale;  // here")
    assert insight.report == ""


def test_what_a_candidate_raises_is_said(tool, look, monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: tool(name, NCU))
    insight = look(tools.nsight(), 'raise ValueError("too large")')
    assert insight.failed == "ValueError: too large"


def test_a_candidate_under_a_tool_is_held_to_the_sandbox(tool, look, monkeypatch, tmp_path):
    monkeypatch.setattr(tools, "find", lambda name: tool(name, NCU))
    body = f"open({str(tmp_path / 'out/records.jsonl')!r}, 'a')"
    insight = look(tools.nsight(), body)
    assert insight.failed.startswith(("PermissionError", "FileNotFoundError"))
    assert not (tmp_path / "out/records.jsonl").exists()
    with pytest.raises(UsageError, match="--without sandcastle"):
        look(tools.nsight(), without=["sandcastle"])
    assert look(tools.nsight(), without=["limits"]).missing["limits"] == profile.SWITCHED_OFF


def test_packages_are_found_where_this_process_has_them(monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("print('found')")
    monkeypatch.syspath_prepend(tmp_path)
    assert inspector._said([sys.executable, "-P", "-m", "only_here"], {}, 20.0) == "found\n"


def test_what_does_not_compile_is_a_sentence(look, monkeypatch, tool):
    monkeypatch.setattr(tools, "find", lambda name: tool(name, NCU))
    assert "syntax_error" in look(tools.nsight(), "this is no Python").fault


def test_a_tool_that_is_missing_is_named_with_its_package(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(tools, "PLACES", dict.fromkeys(tools.PLACES, ()))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    candidate = str(ROOT / "solutions/pool/max_pool2d/thread_per_output.py")
    # Without a card, that is said before a tool is looked for.
    assert cli.main(["profile", candidate, "--device", "cpu"]) == 2
    assert "profile needs a GPU" in capsys.readouterr().err
    monkeypatch.setattr(command, "card", lambda wanted: CPU)
    for options, package in (([], "cuda-nsight-compute"), (["--sanitizer", "racecheck"], "cuda-sanitizer")):
        assert cli.main(["profile", candidate, *options]) == 2
        assert package in capsys.readouterr().err


def test_without_a_card_nothing_is_started(monkeypatch, capsys):
    monkeypatch.setattr(tools, "find", lambda name: "/nowhere/ncu")
    assert cli.main(["profile", str(ROOT / "solutions/pool/max_pool2d/cpp_column_maxima.py"), "--device", "cpu"]) == 2
    assert "profile needs a GPU" in capsys.readouterr().err


LEFT_OUT = ("--without", "seccomp")


@pytest.fixture
def my_kernel(tmp_path, monkeypatch):
    """A candidate and its problem, on this machine's processor in place of a card."""
    monkeypatch.setattr(command, "card", lambda wanted: CPU)
    cli.main(["new", "problem", "toy/scaled"])
    path = tmp_path / "mine.py"
    path.write_text(PLAIN.replace("BODY", "pass"))
    return [str(path), "--problem", "toy/scaled", "--variant", "small", "--out", str(tmp_path / "kept")]


def test_the_command_shows_verdict_and_kernels_and_says_what_is_kept(tool, my_kernel, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tools, "find", lambda name: tool(name, NCU))
    quick = ["--set", "timing.budget_s=1.0", "--set", "timing.precision=0.5"]
    assert cli.main(["profile", *my_kernel, *LEFT_OUT, *quick]) == 0
    printed = capsys.readouterr().out
    assert "Right in every call." in printed
    assert "rows(float *) · 100% of the time" in printed
    (report,) = (tmp_path / "kept/profile").glob("*.ncu-rep")
    assert f"Kept: {report}" in printed
    (record,) = run_directory.read(tmp_path / "kept")[1]
    assert record.status == "passed"
    page = (tmp_path / "kept/report.html").read_text()
    assert "rows(float *)" in page
    assert "2.50 µs" in page


def test_a_tool_that_sees_nothing_says_why_and_which_layers_may_be_left_out(tool, my_kernel, monkeypatch, capsys):
    source = f"#!{sys.executable}\nprint('==ERROR== ERR_NVGPUCTRPERM - no permission')\n"
    monkeypatch.setattr(tools, "find", lambda name: tool(name, source))
    assert cli.main(["profile", *my_kernel, "--no-verdict", *LEFT_OUT, "--without", "limits"]) == 1
    printed = capsys.readouterr().out
    assert "==ERROR== ERR_NVGPUCTRPERM - no permission" in printed
    assert "--without user" in printed
    assert "limits" in printed.partition("ran without these layers of the sandbox: ")[2]


def test_what_keeps_a_tool_from_its_process_is_said_at_once(my_kernel, monkeypatch, capsys):
    monkeypatch.setattr(tools, "find", lambda name: "/nowhere/ncu")
    found = probe.Found(layers=("seccomp",), missing={})
    monkeypatch.setattr(command.probe, "chosen", lambda sandbox, on_a_card: found)
    assert cli.main(["profile", *my_kernel]) == 2
    assert "ncu cannot reach the candidate's process" in capsys.readouterr().err


def test_the_table_has_verdict_roofline_and_figures_at_80_columns():
    figures = dict.fromkeys((figure.name for figure in nsight.FIGURES), 1.25e6)
    launches = [Launch(kernel="rows(float *)", figures=figures), Launch(kernel="rows(float *)", figures={"time": 1.0})]
    console = Console(width=80, file=io.StringIO(), color_system=None)
    timing = Timing(
        clock="device",
        calls_per_burst=1,
        baseline_calls_per_burst=1,
        fixed_us=0.0,
        candidate_us=[],
        baseline_us=[],
        candidate_claimed_us=[],
        baseline_claimed_us=[],
        floor_us=1200.0,
        floor_bound="memory",
    )
    common = {"key": "", "problem": "a/b", "variant": "v", "precision": "float32", "candidate": "c", "device": "H200"}
    record = Record(
        **common,
        baseline="eager",
        status=Status.PASSED,
        speedup=2.0,
        speedup_lo=1.9,
        speedup_hi=2.1,
        candidate_ms=1.5,
        baseline_ms=3.0,
        timing=timing,
        sol_fraction=0.8,
    )
    profile_table.show(Insight(candidate="c", instrument="ncu", launches=launches), record, console)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80
    assert "2.00x as fast as eager" in printed
    least = (
        "Roofline: a call takes at least 1.20 ms by memory at this device's best rates; it reaches 80% of that speed."
    )
    assert least in " ".join(printed.split())
    assert "rows(float *) · 100% of the time · 2 launches" in printed
    assert "1.25 s" in printed
    assert "1.25 MB/s" in printed


def test_the_table_of_a_sanitizer_has_the_line_or_says_that_all_is_well():
    console = Console(width=80, file=io.StringIO(), color_system=None)
    place = Place(kernel="k()", file="cuda.cu", line=9, own_line=21, source_line="out[i] = x;")
    thread = "by thread (0,0,0) in block (1,0,0)"
    finding = Finding(text="Invalid __global__ write", places=[place], more=thread, times=3)
    profile_table.show(Insight(candidate="c", instrument="memcheck", findings=[finding]), None, console)
    whole = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
    profile_table.show(Insight(candidate="c", instrument="racecheck", said=whole), None, console)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    # Below them is the end of what was printed.
    assert lines[:5] == [
        "Invalid __global__ write · 3 times",
        "line 21 of the candidate, in k()",
        "out[i] = x;",
        thread,
        "racecheck found nothing wrong with this call.",
    ]


@pytest.mark.parametrize(
    "insight",
    [
        Insight(candidate="c", instrument="memcheck", said="compute-sanitizer does not start: No such file"),
        Insight(candidate="c", instrument="memcheck", said="========= COMPUTE-SANITIZER\nended after 9 s"),
        Insight(candidate="c", instrument="memcheck", failed="ValueError: x", said="========= ERROR SUMMARY: 0 errors"),
    ],
    ids=["no start", "no end", "no call"],
)
def test_a_sanitizer_that_has_not_looked_at_a_whole_call_does_not_say_that_all_is_well(insight):
    console = Console(width=80, file=io.StringIO(), color_system=None)
    profile_table.show(insight, None, console)
    assert "nothing wrong with this call" not in console.file.getvalue()
    assert "memcheck" in console.file.getvalue()
    assert not insight.has_looked
