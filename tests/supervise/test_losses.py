"""Processes of ours that die during an evaluation are replaced, and the evaluation repeated once; the run goes on."""

import os
import signal

import msgspec
import pytest

from harness import environment, session
from harness.config import Limits
from harness.execution.local import LocalExecutor
from harness.processes import folders
from harness.processes.nursery import Nursery, ZygoteLost
from harness.processes.renewal import RenewedNursery
from harness.records import Outcome, Status
from harness.supervise import builds, recording
from harness.supervise.builds import BuildResult
from harness.supervise.evaluation import Evaluator
from harness.supervise.second_chance import SecondChance
from harness.supervise.supervisor import Supervisor
from harness.wire.messages import FromRunner
from tests.conftest import corpus_config
from tests.processes.test_processes import TidyNursery, keeper_of, zygote_of


@pytest.mark.parametrize(
    ("status", "reason", "killed"),
    [
        (Status.CRASHED, builds.KILLED, True),
        (Status.CRASHED, "signal:SIGSEGV", False),
        # As a candidate raises it.
        (Status.LOAD_ERROR, builds.KILLED, False),
    ],
)
def test_who_was_killed_is_seen_and_not_said(status, reason, killed):
    assert builds.was_killed(Outcome(status=status, reason=reason)) is killed


PIDS = {
    "judge": lambda supervisor, nursery: supervisor.groups.current.judge.child.pid,
    "baseline": lambda supervisor, nursery: supervisor.groups.current.baseline.pid,
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
        present = supervisor.runners.scratch.glob("runner-*")
        seen.setdefault(job.candidate.name, set()).update(folder.name for folder in present)

    config = corpus_config("honest", "honest_after")
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, look)
    try:
        for job in session.plan(config).jobs:
            supervisor.evaluate(job, BuildResult())
        # The baseline's is left.
        (left,) = supervisor.runners.scratch.glob("runner-*")
    finally:
        supervisor.close()
        nursery.close()
    assert seen["honest"] & seen["honest_after"] == {left.name}


class Losing:
    """A nursery whose forking parent, and the one in its place, die while a process is to be started."""

    def __init__(self, role, times):
        self._nursery = Nursery()
        self._role = role
        self._left = times
        self.judges = []
        self.close = self._nursery.close

    def start(self, role, *arguments, **options):
        # A runner's first start is the baseline's.
        if self._left and role == self._role:
            self._left -= 1
            raise ZygoteLost("the forking parent died")
        child = self._nursery.start(role, *arguments, **options)
        self.judges += [child] if role == "judge" else []
        return child


@pytest.mark.parametrize("role", ["judge", "runner"])
@pytest.mark.parametrize("times", [1, 2])
def test_forking_parents_lost_in_a_row_cost_a_job_two_tries_and_never_the_run(role, times, tmp_path):
    config = corpus_config("honest", "honest_after")
    nursery = Losing(role, times)
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
    try:
        first, second = [supervisor.evaluate(job, BuildResult()) for job in session.plan(config).jobs]
        # None is left that nobody asks any more.
        assert [judge.wait(0.0) for judge in nursery.judges[:-1]] == [-signal.SIGKILL] * (len(nursery.judges) - 1)
    finally:
        supervisor.close()
        nursery.close()
    if times == 1:
        assert first.status is Status.PASSED
        assert first.warnings[0] == "evaluated_again: the forking parent died"
    else:
        assert (first.status, first.reason) == (Status.HARNESS_ERROR, "zygote_lost")
    assert second.status is Status.PASSED


def test_a_device_of_which_nothing_can_be_asked_is_not_blamed_for_it(tmp_path):
    (device,) = environment.choose_devices("cpu")
    nursery = Losing("judge", times=1)
    card = msgspec.structs.replace(device, kind="cuda", spec="cuda:0")
    supervisor = Supervisor(nursery, card, corpus_config("honest"), tmp_path, 0, lambda *_: None)
    try:
        assert supervisor.device_fault() == ""
    finally:
        supervisor.close()
        nursery.close()


def test_where_no_other_forking_parent_starts_that_is_a_loss_and_the_next_one_may(tmp_path):
    made = []

    def make():
        if len(made) == 1:
            made.append(None)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        made.append(TidyNursery())
        return made[-1]

    nursery = RenewedNursery(make)
    try:
        nursery.start("runner", FromRunner, tmp_path / "before")
        os.kill(zygote_of(made[0]), signal.SIGKILL)
        with pytest.raises(ZygoteLost, match="temporarily unavailable"):
            nursery.start("runner", FromRunner, tmp_path / "first")
        assert nursery.start("runner", FromRunner, tmp_path / "second").wait(0.0) is None
    finally:
        nursery.close()


def test_a_folder_that_takes_long_to_remove_holds_up_nobody_and_goes_at_the_end(tmp_path, monkeypatch):
    config = corpus_config("honest")
    monkeypatch.setattr(folders, "remove", lambda folder: False)
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
    try:
        record = supervisor.evaluate(session.plan(config).jobs[0], BuildResult())
        # The candidate's, and the baseline's.
        left = len(list(supervisor.runners.scratch.glob("runner-*")))
    finally:
        monkeypatch.undo()
        supervisor.close()
        nursery.close()
    assert (record.status, left) == (Status.PASSED, 2)
    assert not supervisor.runners.scratch.exists()


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


def test_a_mistake_of_ours_in_one_job_s_record_costs_that_job_alone(tmp_path, monkeypatch):
    told = recording.provenance.told
    mistakes = [ZeroDivisionError("in the profile")]

    def mistaken(*arguments):
        if mistakes:
            raise mistakes.pop()
        return told(*arguments)

    monkeypatch.setattr(recording.provenance, "told", mistaken)
    config = corpus_config("honest", "honest_after")
    supervisor = Supervisor(None, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
    failed = BuildResult(fault=Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="no"))
    first, second = [supervisor.evaluate(job, failed) for job in session.plan(config).jobs]
    supervisor.close()
    assert (first.status, first.reason) == (Status.HARNESS_ERROR, "unrecorded")
    assert "ZeroDivisionError: in the profile" in first.evidence["traceback"]
    assert second.status is Status.COMPILE_ERROR


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
    # What another job's parts took is none of theirs.
    assert [records[name].phases_s for name in left] == [{}, {}]


@pytest.mark.parametrize(
    ("by_itself", "said"),
    [
        (True, "the baseline had become slower by itself"),
        (False, "the baseline was slow beside it, and is not without it"),
    ],
)
def test_a_candidate_beside_whom_the_baseline_was_slow_is_timed_once_more(tmp_path, monkeypatch, by_itself, said):
    """Either with a baseline that is as slow alone, or on the CPU, where others may have had its cores."""
    seen = []
    once = Evaluator.once

    def slowed_at_first(self, job, build, phases, **how):
        outcome, verdict = once(self, job, build, phases, **how)
        seen.append(job.candidate.name)
        ending = msgspec.structs.replace(verdict.ending, slowed=len(seen) == 1)
        return outcome, msgspec.structs.replace(verdict, ending=ending)

    monkeypatch.setattr(Evaluator, "once", slowed_at_first)
    monkeypatch.setattr(SecondChance, "_slower_by_itself", lambda self, phases: by_itself)
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], corpus_config("honest"), tmp_path, 0, print)
    try:
        record = supervisor.evaluate(session.plan(corpus_config("honest")).jobs[0], BuildResult())
    finally:
        supervisor.close()
        nursery.close()
    assert seen == ["honest", "honest"]
    assert record.warnings[0] == f"evaluated_again: {said}"


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
