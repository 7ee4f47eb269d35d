"""Runs on this machine: builds and evaluations side by side, and what they leave."""

import tempfile
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest

from harness import session
from harness.config import BuildConfig
from harness.environment import Device
from harness.execution import build_slots, pool
from harness.execution.build_slots import BuildSlots
from harness.execution.local import LocalExecutor
from harness.records import Outcome, Status
from harness.supervise import builds, recording
from harness.supervise.builds import BuildResult, Workshop
from harness.supervise.supervisor import Supervisor
from tests.conftest import corpus_config

FAULT = BuildResult(fault=Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="no"))


@pytest.fixture
def jobs():
    return session.plan(corpus_config("honest", "honest_after", "honest_cpp")).jobs


def test_a_run_shows_what_it_waits_for_and_yields_failures_first(tmp_path, monkeypatch):
    config = corpus_config("honest_cpp", "does_not_compile")
    monkeypatch.setattr(builds, "needs_build", lambda job: True)
    failed = []

    def build(self, job, nursery, folder, log, card):
        if job.candidate.name == "does_not_compile":
            return FAULT
        for _ in range(200):
            if failed:
                break
            time.sleep(0.05)
        return BuildResult(fault=FAULT.fault) if failed else BuildResult()

    monkeypatch.setattr(Workshop, "build", build)
    phases = []
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    monkeypatch.setattr(build_slots, "how_many", lambda config: 2)
    for record in executor.run(session.plan(config).jobs, lambda *told: phases.append(told)):
        failed.append(record.candidate)
    assert failed == ["does_not_compile", "honest_cpp"]
    assert ("cpu", pool.BESIDE, "waiting for 1 build") in phases


def test_a_run_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    close = Supervisor.close

    def slowly(self):
        time.sleep(0.5)
        close(self)

    monkeypatch.setattr(Supervisor, "close", slowly)
    config = corpus_config("honest")
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert record.status is Status.PASSED
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_build_that_is_tried_again_has_a_folder_of_its_own(tmp_path, monkeypatch):
    killed = Outcome(status=Status.CRASHED, reason="signal:SIGKILL", message="killed")
    seen = []

    def build(self, job, nursery, folder, log, card):
        folder.mkdir()
        seen.append(folder)
        return BuildResult(fault=killed)

    monkeypatch.setattr(builds, "needs_build", lambda job: True)
    monkeypatch.setattr(Workshop, "build", build)
    config = corpus_config("honest")
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert (record.status, len(set(seen))) == (Status.CRASHED, 2)


@pytest.mark.parametrize(
    ("room", "slots", "share"), [(None, 4, 0), (100_000, 4, 100_000 // 7), (400, 2, 400 // 5), (3, 1, 1)]
)
def test_processes_are_shared_out_by_what_a_control_group_leaves(room, slots, share, monkeypatch):
    for module in (build_slots, pool):
        monkeypatch.setattr(module, "room_for_processes", lambda: room)
    monkeypatch.setattr(build_slots, "cores", lambda: 8)
    monkeypatch.setattr(build_slots, "available_memory_bytes", lambda: 1 << 40)
    config = corpus_config("honest")
    assert (build_slots.how_many(config), pool.share_of_processes(config, 1)) == (slots, share)


def test_build_slots_are_numbered_from_zero_on(jobs, monkeypatch, tmp_path):
    seen = []
    together = threading.Barrier(3)

    def build(self, job, nursery, folder, log, card):
        together.wait(30.0)
        return FAULT

    monkeypatch.setattr(builds, "needs_build", lambda job: True)
    monkeypatch.setattr(Workshop, "build", build)
    config = msgspec.structs.replace(corpus_config("honest"), build=BuildConfig(slots=3))
    monkeypatch.setattr(Workshop, "__init__", lambda *_: None)
    device = Device(kind="cpu", spec="cpu", name="made up")
    slots = BuildSlots(device, config, None, tmp_path, tmp_path, lambda slot, *_: seen.append(slot))
    assert [build.result() for build in list(map(slots.start, jobs))] == [FAULT] * 3
    slots.close()
    assert set(seen) == {"builder 0", "builder 1", "builder 2"}


EDITED = """
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        print(__file__, open(__file__.replace(".py", ".txt")).read())
    def forward(self, x):
        return self.linear(x).tanh(){mistake}
"""


def test_a_file_that_is_edited_during_a_run_is_evaluated_as_it_was(tmp_path, monkeypatch):
    mine = tmp_path / "mine/toy/scale/edited.py"
    mine.parent.mkdir(parents=True)
    first = EDITED.format(mistake="")
    mine.write_text(first)
    mine.with_suffix(".txt").write_text("data of the first")
    evaluate = Supervisor.evaluate

    def edited_meanwhile(self, job, build):
        mine.write_text(EDITED.format(mistake=" * 2"))
        mine.with_suffix(".txt").write_text("data of the second")
        record = evaluate(self, job, build)
        mine.write_text(first)
        return record

    monkeypatch.setattr(Supervisor, "evaluate", edited_meanwhile)
    config = msgspec.structs.replace(corpus_config("*"), solutions=[str(tmp_path / "mine")])
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert (record.status, record.reason) == (Status.PASSED, "")
    (log,) = (tmp_path / "logs").glob("*edited*.log")
    # By the name that the user knows it by.
    assert f"{mine} data of the first" in log.read_text()


RAISES = """
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
    def forward(self, x):
        return torch.load(__file__.replace("raises", "other"))
"""


def test_records_and_logs_name_the_user_s_file(tmp_path):
    mine = tmp_path / "mine/toy/scale/raises.py"
    mine.parent.mkdir(parents=True)
    mine.write_text(RAISES)
    config = msgspec.structs.replace(corpus_config("*"), solutions=[str(tmp_path / "mine")])
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert record.message.startswith("raises.py:8: FileNotFoundError: ")
    assert str(mine.with_name("other.py")) in record.message
    (log,) = (tmp_path / "logs").glob("*raises*.log")
    assert f'File "{mine}", line 8, in forward' in log.read_text()


LATE = Outcome(status=Status.LOAD_ERROR, reason="late_compile", message="no", evidence={"phase": "load"})
RAISED = Outcome(status=Status.LOAD_ERROR, reason="exception:X", message="no", evidence={"exception": "X"})
IN_FORWARD = Outcome(status=Status.LOAD_ERROR, reason="late_compile", message="no", evidence={"phase": "call"})


@pytest.mark.parametrize(
    ("kind", "at_build", "in_runner", "cards"),
    [
        ("cuda", None, LATE, ["", "made up"]),
        ("cuda", RAISED, None, ["", "made up"]),
        ("cuda", FAULT.fault, None, [""]),
        ("cuda", None, IN_FORWARD, [""]),
        ("cuda", None, RAISED, [""]),
        ("cpu", None, LATE, [""]),
    ],
)
def test_what_a_build_without_a_device_may_have_missed_is_built_with_one(
    kind, at_build, in_runner, cards, tmp_path, monkeypatch
):
    device = Device(kind=kind, spec=f"{kind}:0", name="made up")
    config = corpus_config("honest_cpp")
    seen = []

    def build(self, job, nursery, folder, log, card):
        seen.append(card.name if card else "")
        return BuildResult(libraries={"all": "of them"}) if card else BuildResult(fault=at_build)

    def evaluate(self, job, build):
        outcome = Outcome(status=Status.INCORRECT, reason="mismatch") if build.libraries else build.fault or in_runner
        conclusion = recording.Conclusion(outcome=outcome)
        return recording.record(job, build, conclusion, device, config, phases_s={}, wall_s=0.0, log="")

    monkeypatch.setattr(Workshop, "__init__", lambda *_: None)
    monkeypatch.setattr(Workshop, "build", build)
    monkeypatch.setattr(Supervisor, "evaluate", evaluate)
    executor = LocalExecutor([device], config, tmp_path / "logs", 0, lambda *_: "")
    monkeypatch.setattr(pool, "Nursery", lambda *_: SimpleNamespace(close=lambda: None))
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert seen == cards
    assert record.status is (Status.INCORRECT if len(cards) == 2 else (at_build or in_runner).status)
