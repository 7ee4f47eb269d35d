"""Whole runs with candidates that try what the sandbox forbids, beside honest ones that must not notice it."""

import json
import os
import textwrap
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness import session
from harness.config import Limits
from harness.records import Status
from harness.sandbox import probe
from harness.sandbox.enforcement import LAYERS
from tests import specimens
from tests.conftest import CORPUS, corpus_config

CANDIDATE = '''"""{caption}"""

import ctypes, os, resource, signal, socket, subprocess, sys, threading, time
from pathlib import Path

import torch
from torch import nn

{module}

class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
{init}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
'''

HOG = """
kept = []
while True:
    kept.append(bytearray(b"x" * (32 << 20)))
    time.sleep(0.01)
"""
BOMB = """
while True:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
"""
GIANT = """
with open("giant", "wb") as file:
    file.truncate(1 << 40)
"""
LOOK_AROUND = """
descriptors = []
for fd in range(4096):
    try:
        descriptors.append(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0])
    except OSError:
        pass
Path("found").write_text(repr(dict(
    descriptors=sorted(descriptors),
    environment=Path("/proc/self/environ").read_text() + repr(dict(os.environ)),
    groups=os.getgroups(), folder=os.getcwd(), home=str(Path.home()), user=os.getuid(), session=os.getsid(0),
)))
print(Path("found").read_text(), flush=True)
"""
THREADS_AND_FILES = """
assert Path(__file__).with_suffix(".txt").read_text() == "beside it"
torch.set_num_threads(2)
import numpy as np
assert np.ones((64, 64)) @ np.ones(64) is not None
assert subprocess.run(["c++", "--version"], capture_output=True, check=True).stdout
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
import tempfile
with tempfile.NamedTemporaryFile() as file:
    file.write(b"x")
"""


def candidate(module="", init="", caption="Tries something."):
    return CANDIDATE.format(caption=caption, module=module, init=textwrap.indent(init, " " * 8))


@pytest.fixture
def attempt(tmp_path):
    """Run candidates (name -> source), and return their records; what lies beside each is given by `beside`."""

    def run(sources, beside=None, **changes):
        folder = tmp_path / "mine/toy/scale"
        folder.mkdir(parents=True)
        for name, text in {f"{name}.py": text for name, text in sources.items()}.items() | (beside or {}).items():
            (folder / name).write_text(text)
        config = msgspec.structs.replace(corpus_config("*"), solutions=[str(tmp_path / "mine")], **changes)
        with open(tmp_path / "console", "w") as file:
            records = session.run(config, tmp_path / "run", Console(file=file, width=200), command=["test"])
        return {record.candidate: record for record in records}

    return run


def test_attempts_fail_and_honest_candidates_do_not_notice(attempt, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_TEST_TOKEN", "a secret of the user's")
    found = probe.probe()
    elsewhere = Path(f"/var/tmp/assay-planted-{os.getpid()}")
    reads = {
        "reads_results": tmp_path / "run/records.jsonl",
        "reads_another": specimens.load()["honest"].path,
        "reads_a_neighbour": tmp_path / "mine/toy/scale/uses_its_own.py",
        "reads_the_problem": CORPUS / "problems/toy/scale.py",
    }
    sources = {name: candidate(init=f"Path({str(path)!r}).read_text()") for name, path in reads.items()}
    sources |= {
        "writes_elsewhere": candidate(init=f"Path({str(elsewhere)!r}).write_text('x')"),
        "kills_its_parent": candidate(init="os.kill(os.getppid(), signal.SIGKILL)"),
        "calls_home": candidate(init="socket.create_connection(('127.0.0.1', 9), 1)"),
        "takes_memory": candidate(init=HOG),
        "takes_processes": candidate(init="resource.setrlimit(resource.RLIMIT_NPROC, (32, 32))\n" + BOMB),
        "takes_disk": candidate(init=GIANT),
        "looks_around": candidate(init=LOOK_AROUND),
        "uses_its_own": candidate(init=THREADS_AND_FILES),
    }
    if "namespaces" in found.layers:
        sources["uses_its_own"] += "\nos.makedirs('/tmp/my_extension')\n"
    limits = Limits(call_s=5.0, first_call_s=20.0, load_s=60.0, host_memory_gb=1.5)
    records = attempt(sources, {"uses_its_own.txt": "beside it"}, limits=limits)
    told = json.loads((tmp_path / "run/run.json").read_text())["environment"]
    assert told["sandbox"] == list(found.layers)
    assert told["sandbox_missing"] == found.missing
    assert not elsewhere.exists()
    seen = {name: (str(record.status), record.reason) for name, record in records.items()}
    assert seen["takes_memory"] == ("out_of_memory", "host_memory")
    assert {name: seen[name] for name in ("looks_around", "uses_its_own")} == dict.fromkeys(
        ("looks_around", "uses_its_own"), ("passed", "")
    ), {name: record.message for name, record in records.items()}
    if "landlock" in found.layers:
        for name in (*reads, "writes_elsewhere"):
            # A folder that is closed to other users is covered by an empty one.
            assert seen[name][1] in ("exception:PermissionError", "exception:FileNotFoundError"), name
        assert "docs/threat-model.md" in records["writes_elsewhere"].message
    if "signals" in found.layers:
        assert seen["kills_its_parent"] == ("load_error", "exception:PermissionError")
    if {"namespaces", "seccomp"} & set(found.layers):
        assert seen["calls_home"] == ("load_error", "exception:OSError")
    if "limits" in found.layers:
        assert seen["takes_disk"] == ("resource_limit", "file_size")
        if "user" in found.layers:
            assert seen["takes_processes"] == ("resource_limit", "processes")
    printed = (tmp_path / "run" / records["looks_around"].log).read_text()
    facts = eval(printed)
    assert "a secret of the user's" not in facts["environment"]
    # The standard streams, the channel, the memory that the judge gave it, and its own entry in /proc.
    assert set(facts["descriptors"]) - {f"/proc/{facts['session']}"} == {"/dev/null", "/memfd", "pipe", "socket"}
    assert facts["descriptors"].count("socket") == 1
    assert facts["groups"] == [] or "user" not in found.layers
    assert facts["home"] == facts["folder"]
    if "user" in found.layers and os.geteuid() == 0:
        assert facts["user"] not in (0, os.getuid())


def test_the_sandbox_can_be_switched_off_and_the_run_says_so(attempt, tmp_path):
    path = specimens.load()["honest"].path
    records = attempt({"reads_another": candidate(init=f"Path({str(path)!r}).read_text()")}, sandbox="off")
    assert records["reads_another"].status is Status.PASSED
    told = json.loads((tmp_path / "run/run.json").read_text())
    assert told["config"]["sandbox"] == "off"
    assert told["environment"]["sandbox"] == []
    assert "**Sandbox**: the sandbox was off" in (tmp_path / "run/leaderboard.md").read_text()


@pytest.mark.slow
def test_torch_compile_works_inside(attempt):
    records = attempt({"plain": candidate()}, baselines=["compile"], limits=Limits(first_call_s=300.0))
    assert records["baseline:compile"].status is Status.PASSED, records["baseline:compile"].message


@pytest.mark.gpu
def test_cuda_works_inside_all_layers(attempt, capsys):
    """Contexts, shared device memory both ways, graphs, Triton, an nvcc build; nothing of it may need a hole."""
    extension = specimens.load()["cuda_honest"].path.read_text()
    sources = {"extension": extension, "plain": candidate(), "looks_around": candidate(init=LOOK_AROUND)}
    limits = Limits(first_call_s=300.0)
    baselines = ["compile", "cuda-graph"]
    records = attempt(sources, device="cuda:0", baselines=baselines, limits=limits, sandbox="require")
    outcomes = {name: (str(record.status), record.reason, record.message) for name, record in records.items()}
    with capsys.disabled():
        for name, record in sorted(records.items()):
            print(f"{name}: {outcomes[name]} load {record.phases_s.get('load')} s, wall {record.wall_s} s")
    assert {status for status, _, _ in outcomes.values()} == {"passed"}, outcomes


@pytest.mark.gpu
@pytest.mark.parametrize("layer", LAYERS)
def test_cuda_works_inside_each_layer(layer, attempt, monkeypatch):
    """Which layer it is, where all of them together fail."""
    with_it = {"user": "namespaces", "signals": "landlock", "card": "landlock"}
    layers = (layer, with_it[layer]) if layer in with_it else (layer,)
    monkeypatch.setattr(probe, "chosen", lambda *_: probe.Found(layers=layers))
    record = attempt({"plain": candidate()}, device="cuda:0")["plain"]
    assert record.status is Status.PASSED, record.message


WHO = "said = (os.geteuid(), [line for line in open('/proc/self/status') if line.startswith('CapEff')][0].split()[1])"


def test_files_that_only_their_owner_may_read_cost_nobody_a_layer(attempt, tmp_path):
    tellers = {name: candidate(init=f"{WHO}\nraise ValueError(str(said))") for name in ("closed", "who")}
    probe.probe.cache_clear()
    before = os.umask(0o077)
    try:
        records = attempt({"honest": candidate(), **tellers, "reads": candidate(init=READS)}, {"reads.txt": "its own"})
    finally:
        os.umask(before)
    probe.probe.cache_clear()
    found = probe.probe()
    assert json.loads((tmp_path / "run/run.json").read_text())["environment"]["sandbox"] == list(found.layers)
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    assert {name: records[name].message for name in ("honest", "reads")} == {"honest": "", "reads": ""}
    if "user" in found.layers:
        for name in tellers:
            assert "'0000000000000000'" in records[name].message
            assert ("(0, " in records[name].message) == (os.geteuid() == 0 and "user" not in found.layers)


READS = "assert Path(__file__).with_suffix('.txt').read_text() == 'its own'"
