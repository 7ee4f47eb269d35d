"""In what order a device's slot gets its jobs, while builds are still going on."""

from concurrent.futures import Future

import pytest

from harness import session
from harness.execution import local
from harness.execution.local import LocalExecutor
from harness.records import Outcome, Status
from harness.worker.builds import BuildResult, Workshop
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
    assert todo.take(None) == "wait"
    assert todo.builds_awaited() == 1
    last.set_result(BuildResult())
    assert todo.take(None) == jobs[0]
    assert todo.builds_awaited() == 0


def test_a_build_that_failed_gets_its_record_at_once(jobs):
    todo = work(jobs, ended(BuildResult()), ended(FAULT), Future())
    assert todo.take(None) == jobs[1]
    assert todo.take(None) == "wait"


def test_a_build_that_broke_ends_the_run_at_once(jobs):
    broken = Future()
    broken.set_exception(OSError("no space"))
    assert work(jobs, Future(), broken, Future()).take(None) == jobs[1]


def test_on_a_card_what_is_built_is_measured(jobs):
    todo = work(jobs, Future(), ended(BuildResult()), Future(), all_builds_first=False)
    assert todo.take(None) == jobs[1]
    assert todo.take(None) == "wait"
    assert todo.builds_awaited() == 0


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
