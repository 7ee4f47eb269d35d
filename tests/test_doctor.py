"""The doctor: one line for each thing, a mend where it is missing, and an exit code that says whether all is lost."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from harness import cli, environment
from harness.compile import toolkit
from harness.doctor import examination as doctor
from harness.doctor import trial
from harness.doctor.examination import Diagnosis
from harness.environment import Device, Torch
from harness.reports.terminal import doctor_table
from harness.sandbox.enforcement import LAYERS


def found(name):
    return next(finding for finding in doctor.examine() if finding.name == name)


def test_every_finding_says_what_was_found_and_how_to_mend_it(capsys):
    findings = doctor.examine()
    assert all(finding.found for finding in findings)
    assert all(finding.mend for finding in findings if not finding.ok)
    assert set(LAYERS) == {finding.name for finding in findings if finding.heading}
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert all(finding.name in printed for finding in findings)


def test_without_torch_it_still_answers_and_exits_with_1(capsys, monkeypatch):
    def nothing(name):
        raise environment.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(environment.importlib.metadata, "version", nothing)
    environment.torch_build.cache_clear()
    try:
        assert cli.main(["doctor"]) == 1
    finally:
        environment.torch_build.cache_clear()
    assert "`make setup` installs it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("driver", "built_for", "ok", "words"),
    [
        ("13.0", "12.8", True, "driver 580.65 runs CUDA 13.0, torch is built for 12.8"),
        ("12.8", "13.0", False, "install a driver for CUDA 13, or a torch built for CUDA 12"),
        ("12.4", "12.8", True, ""),
        ("13.0", "", False, "torch is built without CUDA"),
    ],
)
def test_driver_and_torch_must_match(driver, built_for, ok, words, monkeypatch):
    card = Device(kind="cuda", spec="cuda:0", name="NVIDIA H200", capability="9.0", memory_bytes=141 * 10**9)
    monkeypatch.setattr(environment, "gpus", lambda: ((card,), "580.65", ""))
    monkeypatch.setattr(environment, "driver_cuda", lambda: driver)
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda=built_for))
    shown, fit = doctor.gpu()
    assert (shown.ok, shown.found) == (True, "cuda:0 NVIDIA H200, 141 GB")
    assert fit.ok is ok
    assert words in f"{fit.found} {fit.mend}"


def test_a_missing_driver_is_said_once(monkeypatch):
    monkeypatch.setattr(environment, "gpus", lambda: ((), "", "no NVIDIA driver was found"))
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda="13.0"))
    (finding,) = doctor.gpu()
    assert (finding.ok, finding.found) == (False, "no NVIDIA driver was found")


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ([], "C++ and CUDA candidates can be evaluated here."),
        (["GPU"], "evaluated here; CUDA candidates need a GPU (`check` compiles them without one)."),
        (["GPU", "nvcc"], "evaluated here; CUDA candidates need a GPU, and nvcc to be compiled."),
        (["nvcc", "driver and torch"], "CUDA candidates cannot; missing: driver and torch, nvcc."),
        (["C++ compiler", "nvcc"], "candidates that compile nothing can be evaluated here; missing: C++ compiler."),
        (["torch", "GPU"], "Nothing can be evaluated here; missing: torch."),
    ],
)
def test_the_last_sentence_says_what_can_be_evaluated(missing, sentence):
    names = ("torch", "GPU", "driver and torch", "nvcc", "C++ compiler", "ninja", "cores", "landlock")
    findings = [Diagnosis(name, name not in missing, "x", vital=name == "torch") for name in names]
    assert doctor.conclusion(findings).endswith(sentence)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder, and nothing remembered or found outside of it: a test makes it the one with the toolkit."""
    monkeypatch.setattr(toolkit, "_homes", lambda: iter([tmp_path]))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    toolkit.find.cache_clear()
    yield tmp_path
    toolkit.find.cache_clear()


def make_nvcc(home, mode=0o755):
    for folder in ("bin", "include"):
        (home / folder).mkdir()
    (home / "include/cuda_runtime.h").write_text("")
    tool = home / "bin/nvcc"
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.1\n")
    tool.chmod(mode)


def test_an_nvcc_of_another_major_version_is_not_ok(home, monkeypatch):
    make_nvcc(home)
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda="13.0"))
    finding = found("nvcc")
    assert not finding.ok
    assert finding.found == "12.4, but torch is built for CUDA 13.0"
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda="12.8"))
    assert found("nvcc").ok


def test_an_nvcc_where_only_check_looks_is_enough_for_a_torch_without_cuda(home, monkeypatch):
    make_nvcc(home)
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda=""))
    assert (found("nvcc").ok, found("nvcc").found) == (True, "12.4")
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda="12.8"))
    finding = found("nvcc")
    assert not finding.ok
    assert finding.found == f"12.4 in {home}; `check` uses it, but torch does not find it"


def test_an_nvcc_that_does_not_run_is_none(home, monkeypatch):
    make_nvcc(home, mode=0o644)
    monkeypatch.setattr(environment, "torch_build", lambda: Torch(version="2.11.0", cuda=""))
    finding = found("nvcc")
    assert (finding.ok, finding.found) == (False, "not found")
    assert toolkit.INSTALL in finding.mend


def test_a_tool_that_is_not_there_is_missing(home, monkeypatch):
    monkeypatch.setenv("CXX", str(home / "c++"))
    assert (found("C++ compiler").ok, found("nvcc").ok) == (False, False)


def test_a_missing_thing_shows_its_mend_and_a_present_one_does_not():
    console = Console(file=io.StringIO(), width=80)
    findings = [
        Diagnosis("ninja", False, "not found", "pip install ninja"),
        Diagnosis("GPU", True, "x", "y"),
        Diagnosis("user", True, "x", heading="sandbox: ..."),
    ]
    doctor_table.show(findings, "All is well.", console)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines == [
        "ninja  missing  not found",
        "                -> pip install ninja",
        "GPU    ok       x",
        "",
        "sandbox: ...",
        "user   ok       x",
        "",
        "All is well.",
    ]


def test_it_imports_no_torch():
    script = "import sys; sys.modules['torch'] = None; from harness import cli; sys.exit(cli.main(['doctor']))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_known_verdicts_are_what_they_should_be(capsys):
    assert cli.main(["doctor", "--try", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tried = [one for one in told["found"] if "known verdicts" in one["heading"]]
    assert [one["name"] for one in tried if one["ok"]] == ["a right one in C++", "a wrong one", "a cheat"]
    assert [one["found"].split()[0] for one in tried] == ["passed", "incorrect", "incorrect"]
    assert told["conclusion"].endswith(trial.conclusion([]))


@pytest.mark.parametrize("passes", ["WRONG", "CHEAT"])
def test_a_wrong_verdict_is_said_and_makes_the_exit_code_1(passes, capsys, monkeypatch):
    monkeypatch.setattr(trial, passes, trial.RIGHT["PyTorch"])
    monkeypatch.setitem(trial.RIGHT, "C++", trial.RIGHT["PyTorch"])
    assert cli.main(["doctor", "--try"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    name = {"WRONG": "a wrong one", "CHEAT": "a cheat"}[passes]
    assert f"{name} unexpected passed" in printed
    assert "(expected: incorrect or rejected)" in printed
    assert f"not to be relied on; unexpected: {name} (cpu" in printed


def test_without_torch_nothing_is_tried(monkeypatch, capsys):
    lost = [Diagnosis("torch", False, "not installed", "install it", vital=True)]
    monkeypatch.setattr(doctor, "examine", lambda: lost)
    assert cli.main(["doctor", "--try"]) == 1
    assert "known verdicts" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "missing", "language"),
    [
        ("cuda", set(), "CUDA"),
        ("cuda", {"nvcc"}, "PyTorch"),
        ("cpu", {"GPU", "nvcc"}, "C++"),
        ("cpu", {"ninja"}, "PyTorch"),
        ("cuda", {"C++ compiler"}, "PyTorch"),
    ],
)
def test_the_right_one_is_compiled_as_far_as_this_machine_can(kind, missing, language):
    device = Device(kind=kind, spec=kind, name="")
    assert trial._language(device, missing) == language
