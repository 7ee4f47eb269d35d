"""Processes of ours that die during an evaluation are replaced, and the evaluation repeated once; the run goes on."""

import os
import signal

import msgspec
import pytest

from harness import environment, session
from harness.config import Limits
from harness.execution.local import LocalExecutor
from harness.processes.nursery import Nursery, ZygoteLost
from harness.processes.renewal import RenewedNursery
from harness.records import Status
from harness.supervise import builds
from harness.supervise.builds import BuildResult
from harness.supervise.supervisor import Supervisor
from tests.conftest import corpus_config
from tests.processes.test_processes import keeper_of, zygote_of

PIDS = {
    "judge": lambda supervisor, nursery: supervisor._group.judge.child.pid,
    "baseline": lambda supervisor, nursery: supervisor._group.baseline.pid,
    "zygote": lambda supervisor, nursery: zygote_of(nursery._nursery),
    "keeper": lambda supervisor, nursery: keeper_of(nursery._nursery),
}


@pytest.fixture
def evaluate(tmp_path):
    """The records of two honest candidates, while `victim` is killed in the first so many evaluations of the first."""

    def run(victim, times, phase="timing"):
        config = corpus_config("honest", "honest_after")
        nursery = RenewedNursery(Nursery)
        killed = []

        def strike(job, now):
            if job.candidate.name == "honest" and now == phase and len(killed) < times:
                killed.append(PIDS[victim](supervisor, nursery))
                os.kill(killed[-1], signal.SIGKILL)

        supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, strike)
        try:
            records = [supervisor.evaluate(job, BuildResult()) for job in session.plan(config).jobs]
        finally:
            supervisor.close()
            nursery.close()
        assert len(set(killed)) == times
        return records

    return run


@pytest.mark.parametrize("victim", PIDS)
def test_what_is_lost_once_is_replaced_and_the_record_says_so(evaluate, victim):
    first, second = evaluate(victim, times=1)
    assert (first.status, second.status) == (Status.PASSED, Status.PASSED)
    assert first.warnings[0].startswith("evaluated_again: ")
    assert not any(warning.startswith("evaluated_again") for warning in second.warnings)


def test_a_runner_s_folder_goes_with_the_runner(tmp_path):
    seen = {}

    def look(job, now):
        seen.setdefault(job.candidate.name, set()).update(path.name for path in supervisor._scratch.iterdir())

    config = corpus_config("honest", "honest_after")
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, look)
    try:
        for job in session.plan(config).jobs:
            supervisor.evaluate(job, BuildResult())
        # The baseline's is left.
        (left,) = supervisor._scratch.iterdir()
    finally:
        supervisor.close()
        nursery.close()
    assert seen["honest"] & seen["honest_after"] == {left.name}


def test_a_judge_lost_twice_is_the_candidates_doing_and_the_run_goes_on(evaluate):
    first, second = evaluate("judge", times=2)
    assert (first.status, first.reason) == (Status.REJECTED, "judge_lost")
    assert first.evidence["judge_exit_code"] == -signal.SIGKILL
    assert second.status is Status.PASSED


def test_a_baseline_killed_while_a_problem_is_opened_spoils_nobodys_record(evaluate):
    first, second = evaluate("baseline", times=1, phase="baseline")
    assert (first.status, second.status) == (Status.PASSED, Status.PASSED)


def test_a_build_killed_from_outside_is_done_again_once():
    outcomes = iter([ZygoteLost("gone"), BuildResult(compile_s=1.0)])

    def attempt():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert builds.built_again(attempt).compile_s == 1.0


class Broken:
    """A look at a device that finds something wrong with it, after a candidate that crashes."""

    def __init__(self, times):
        self.left = times

    def __call__(self, supervisor):
        self.left -= 1
        return "it does not answer" if self.left >= 0 else ""


def run(tmp_path, devices, faults):
    config = corpus_config("exits_zero", "honest", "honest_after")
    devices = environment.choose_devices("cpu") * devices
    executor = LocalExecutor(devices, config, tmp_path, 0, device_fault=Broken(faults))
    return {record.candidate: record for record in executor.run(session.plan(config).jobs, lambda *_: None)}


def test_a_broken_device_is_left_and_the_run_goes_on_with_the_other(tmp_path):
    records = run(tmp_path, devices=2, faults=1)
    assert records["exits_zero"].status is Status.CRASHED
    assert "out of service" in records["exits_zero"].warnings[-1]
    assert {records[name].status for name in ("honest", "honest_after")} == {Status.PASSED}


def test_without_a_device_the_rest_is_left_to_the_next_run(tmp_path):
    records = run(tmp_path, devices=1, faults=1)
    left = {name: record.reason for name, record in records.items() if record.status is Status.HARNESS_ERROR}
    assert left == {"honest": "device_lost", "honest_after": "device_lost"}


def test_a_baseline_that_became_slower_by_itself_is_timed_anew_and_the_candidate_with_it(tmp_path, monkeypatch):
    """The judge says that the baseline was slow beside the candidate, and is as slow when that is gone."""
    seen = []
    judged = Supervisor._judged

    def slowed_at_first(self, job, build):
        verdict = judged(self, job, build)
        seen.append(job.candidate.name)
        return msgspec.structs.replace(verdict, slowed=len(seen) == 1)

    monkeypatch.setattr(Supervisor, "_judged", slowed_at_first)
    monkeypatch.setattr(Supervisor, "_slower_by_itself", lambda self, job: True)
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], corpus_config("honest"), tmp_path, 0, print)
    try:
        record = supervisor.evaluate(session.plan(corpus_config("honest")).jobs[0], BuildResult())
    finally:
        supervisor.close()
        nursery.close()
    assert seen == ["honest", "honest"]
    assert record.warnings[0] == "evaluated_again: the baseline had become slower, not by this candidate"


def test_a_record_says_which_limit_it_ended_by(tmp_path):
    config = msgspec.structs.replace(corpus_config("hangs_while_loading"), limits=Limits(load_s=3.0))
    nursery = RenewedNursery(Nursery)
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
    try:
        record = supervisor.evaluate(session.plan(config).jobs[0], BuildResult())
    finally:
        supervisor.close()
        nursery.close()
    assert (record.status, record.reason, record.limit) == (Status.TIMEOUT, "load", {"limits.load_s": 3.0})
