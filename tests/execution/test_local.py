"""In what order a device's slot gets its jobs, while builds are still going on."""

import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from harness import session
from harness.config import Build
from harness.execution import local
from harness.execution.local import LocalExecutor
from harness.records import Outcome, Status
from harness.supervise.builds import BuildResult, Workshop
from harness.supervise.supervisor import Supervisor
from tests.conftest import corpus_config

FAULT = BuildResult(fault=Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="no"))


def ended(result):
    future = Future()
    future.set_result(result)
    return future


@pytest.fixture
def jobs():
    return session.plan(corpus_config("honest", "honest_after", "honest_cpp")).jobs


def work(jobs, *builds, all_builds_first=True):
    keyed = {local._build_key(job): build for job, build in zip(jobs, builds, strict=True)}
    return local._Work(jobs, keyed, 1, all_builds_first=all_builds_first)


def test_on_the_cpu_nothing_is_measured_before_the_last_build(jobs):
    last = Future()
    todo = work(jobs, ended(BuildResult()), ended(BuildResult()), last)
    assert todo.take("cpu") == "wait"
    assert todo.builds_awaited() == 1
    last.set_result(BuildResult())
    assert todo.take("cpu") == jobs[0]
    assert todo.builds_awaited() == 0


def test_a_build_that_failed_gets_its_record_at_once(jobs):
    todo = work(jobs, ended(BuildResult()), ended(FAULT), Future())
    assert todo.take("cpu") == jobs[1]
    assert todo.take("cpu") == "wait"


def test_a_build_that_broke_ends_the_run_at_once(jobs):
    broken = Future()
    broken.set_exception(OSError("no space"))
    assert work(jobs, Future(), broken, Future()).take("cpu") == jobs[1]


def test_on_a_card_what_is_built_is_measured(jobs):
    todo = work(jobs, Future(), ended(BuildResult()), Future(), all_builds_first=False)
    assert todo.take("cpu") == jobs[1]
    assert todo.take("cpu") == "wait"
    assert todo.builds_awaited() == 0


@pytest.fixture
def many(jobs):
    """Jobs of three groups: ten, three and two candidates."""

    def one(variant, number):
        candidate = msgspec.structs.replace(jobs[0].candidate, path=Path(f"{number}.py"))
        return msgspec.structs.replace(jobs[0], variant=variant, candidate=candidate)

    sizes = {"first": 10, "second": 3, "third": 2}
    return [
        one(variant, number) for number, variant in enumerate(v for v, count in sizes.items() for _ in range(count))
    ]


def groups_of(todo, turns):
    """Which group each slot of `turns` is given a job of."""
    return [taken if isinstance(taken := todo.take(slot), str | None) else taken.variant for slot in turns]


def test_slots_keep_to_groups_of_their_own(many):
    todo = work(many, *[ended(BuildResult())] * 15, all_builds_first=False)
    assert groups_of(todo, "abababab") == ["first", "second"] * 3 + ["first", "third"]
    assert groups_of(todo, "ab") == ["first", "third"]
    # Five of the first group are left: worth a second judge.
    assert groups_of(todo, "bbbbbb") == ["first"] * 5 + [None]


def test_the_end_of_a_group_is_left_to_the_slot_that_has_it(many):
    todo = work(many[:13], *[ended(BuildResult())] * 13, all_builds_first=False)
    assert groups_of(todo, "aaaaaaabbb") == ["first"] * 7 + ["second"] * 3
    assert groups_of(todo, "b") == ["wait"]
    assert groups_of(todo, "aaab") == ["first"] * 3 + [None]


def test_a_lost_slots_group_is_free_again(many):
    todo = local._Work(
        many[:12], dict.fromkeys(map(local._build_key, many), ended(BuildResult())), 2, all_builds_first=False
    )
    assert groups_of(todo, "aaaaaaaabb") == ["first"] * 8 + ["second"] * 2
    assert groups_of(todo, "b") == ["wait"]
    assert todo.leave("a") == []
    assert groups_of(todo, "bb") == ["first"] * 2


def test_groups_that_are_built_come_first(many):
    builds = [ended(BuildResult()), *[Future() for _ in range(9)], *[ended(BuildResult())] * 5]
    assert groups_of(work(many, *builds, all_builds_first=False), "aaaa") == ["second"] * 3 + ["third"]


def test_a_run_shows_what_it_waits_for_and_yields_failures_first(tmp_path, monkeypatch):
    config = corpus_config("honest_cpp", "does_not_compile")
    monkeypatch.setattr(local, "needs_build", lambda job: True)
    failed = []

    def build(self, job, nursery, folder, log):
        if job.candidate.name == "does_not_compile":
            return FAULT
        for _ in range(200):
            if failed:
                break
            local.time.sleep(0.05)
        return BuildResult(fault=FAULT.fault) if failed else BuildResult()

    monkeypatch.setattr(Workshop, "build", build)
    phases = []
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    monkeypatch.setattr(executor, "_build_slots", lambda: 2)
    for record in executor.run(session.plan(config).jobs, lambda *told: phases.append(told)):
        failed.append(record.candidate)
    assert failed == ["does_not_compile", "honest_cpp"]
    assert ("cpu", local.BESIDE, "waiting for 1 build") in phases


def test_a_run_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    close = Supervisor.close

    def slowly(self):
        local.time.sleep(0.5)
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

    def build(self, job, nursery, folder, log):
        folder.mkdir()
        seen.append(folder)
        return BuildResult(fault=killed)

    monkeypatch.setattr(local, "needs_build", lambda job: True)
    monkeypatch.setattr(Workshop, "build", build)
    config = corpus_config("honest")
    executor = LocalExecutor(session.environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    (record,) = executor.run(session.plan(config).jobs, lambda *_: None)
    assert (record.status, len(set(seen))) == (Status.CRASHED, 2)


@pytest.mark.parametrize(
    ("room", "slots", "share"), [(None, 4, 0), (100_000, 4, 100_000 // 7), (400, 2, 400 // 5), (3, 1, 1)]
)
def test_processes_are_shared_out_by_what_a_control_group_leaves(room, slots, share, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "room_for_processes", lambda: room)
    monkeypatch.setattr(local, "cores", lambda: 8)
    monkeypatch.setattr(local, "available_memory_bytes", lambda: 1 << 40)
    executor = LocalExecutor(session.environment.choose_devices("cpu"), corpus_config("honest"), tmp_path, 0)
    assert (executor._build_slots(), executor._share_of_processes()) == (slots, share)


def test_build_slots_are_numbered_from_zero_on(jobs, monkeypatch, tmp_path):
    seen = []
    together = threading.Barrier(3)

    def build(self, job, nursery, folder, log):
        together.wait(30.0)
        return FAULT

    monkeypatch.setattr(local, "needs_build", lambda job: True)
    monkeypatch.setattr(Workshop, "build", build)
    config = msgspec.structs.replace(corpus_config("honest"), build=Build(slots=3))
    executor = LocalExecutor([], config, tmp_path, 0)
    with ThreadPoolExecutor(3) as pool:
        arguments = (Workshop.__new__(Workshop), None, tmp_path, lambda slot, *_: seen.append(slot))
        builds = executor._start_builds(jobs, pool, *arguments)
        assert [build.result() for build in builds.values()] == [FAULT] * 3
    assert set(seen) == {"builder 0", "builder 1", "builder 2"}
