"""Jobs for several machines, which the test plays: each job has one record, whichever machine is lost."""

import errno
import os
import queue
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from harness import session
from harness.cluster.parcels import Shelf, packed
from harness.cluster.slots import ClusterSlots, NodeLost
from harness.environment import choose_devices
from harness.execution.local import LocalExecutor
from harness.execution.pool import LOOK_S
from harness.records import Outcome, Status
from harness.supervise import recording
from tests.conftest import corpus_config

CONFIG = corpus_config("honest", "w*")
DEVICE = choose_devices("cpu")[0]


class Machine:
    """Answers at once, after `go`, or never again after so many jobs."""

    def __init__(self, name, lasts=1000, reason="made_up", prepares=1):
        self.name, self.measures, self.prepares, self._lasts, self._reason = name, 1, prepares, lasts, reason
        self.seen, self.ended, self.go = [], False, threading.Event()
        self._lock = threading.Lock()

    def evaluate(self, job, priority):
        with self._lock:
            self.seen.append(job.candidate.name)
            lost = len(self.seen) > self._lasts
        self.go.wait(30.0)
        # So that none has all to itself.
        time.sleep(0.05)
        if lost and self._reason == "gone":
            raise NodeLost(f"{self.name} was lost")
        status = Status.HARNESS_ERROR if lost else Status.INCORRECT
        outcome = Outcome(status=status, reason="device_lost" if lost else self._reason, message=self.name)
        record = recording.without_result(job, DEVICE, CONFIG, outcome)
        return record, {recording.log_name(job): b"printed"}, not lost

    def end(self):
        self.ended = True


class Machines:
    """A workplace of such machines."""

    def __init__(self, *machines):
        self.machines = machines

    def slots(self, devices, config, logs, seed, tell, report_phase, private=()):
        return ClusterSlots(self.machines, devices[0], config, logs, tell, report_phase)


def run(tmp_path, *machines):
    for machine in machines:
        machine.go.set()
    executor = LocalExecutor([DEVICE], CONFIG, tmp_path / "logs", 0, workplace=Machines(*machines))
    todo = session.plan(CONFIG).jobs
    assert len(todo) >= 5
    records = list(executor.run(todo, lambda *_: None))
    assert Counter(record.key for record in records) == Counter(job.key for job in todo)
    return records


def test_each_job_is_done_by_one_machine_and_its_log_comes_back(tmp_path):
    one, two = Machine("one"), Machine("two")
    records = run(tmp_path, one, two)
    assert {record.reason for record in records} == {"made_up"}
    assert len(one.seen) + len(two.seen) == len(records)
    assert {path.read_text() for path in (tmp_path / "logs").iterdir()} == {"printed"}
    assert len(list((tmp_path / "logs").iterdir())) == len(records)


def put_link(log, victim):
    log.symlink_to(victim)


def put_pipe(log, victim):
    os.mkfifo(log)


def put_folder(log, victim):
    log.mkdir()


@pytest.mark.parametrize(("put", "is_written"), [(put_link, True), (put_pipe, True), (put_folder, False)])
def test_a_log_follows_no_link_and_holds_nobody_up(tmp_path, capsys, put, is_written):
    (tmp_path / "logs").mkdir()
    victim = tmp_path / "bashrc"
    victim.write_text("the user's")
    log = tmp_path / "logs" / recording.log_name(session.plan(CONFIG).jobs[0])
    put(log, victim)
    assert {record.reason for record in run(tmp_path, Machine("one"))} == {"made_up"}
    assert victim.read_text() == "the user's"
    assert (not log.is_symlink() and log.is_file() and log.read_text() == "printed") is is_written
    assert ("cannot be written" in capsys.readouterr().err) is not is_written


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 300])
def test_a_log_s_name_from_another_machine_ends_nothing(tmp_path, capsys, name):
    machine = Machine("one")
    whole = machine.evaluate
    machine.evaluate = lambda *given: (whole(*given)[0], {name: b"printed"}, True)
    assert {record.reason for record in run(tmp_path, machine)} == {"made_up"}
    assert "cannot be written" in capsys.readouterr().err


def test_whatever_cannot_be_kept_costs_its_own_job_alone(tmp_path):
    machine = Machine("one")
    whole, first = machine.evaluate, []
    machine.evaluate = lambda *given: whole(*given) if first else first.append(1) or (None, {}, True)
    records = run(tmp_path, machine)
    assert Counter(record.reason for record in records) == {"unrecorded": 1, "made_up": len(records) - 1}


def test_no_machine_has_all_that_others_could_do(tmp_path):
    machines, told = [Machine(name, prepares=20) for name in ("one", "two")], queue.Queue()
    slots = ClusterSlots(machines, DEVICE, CONFIG, tmp_path / "logs", lambda *end: told.put(end), lambda *_: None)
    jobs = session.plan(CONFIG).jobs[:5] * 4
    slots.submit(jobs)
    wait_until(lambda: all(len(machine.seen) >= 5 for machine in machines))
    time.sleep(2 * LOOK_S)
    assert [len(machine.seen) for machine in machines] == [5, 5]
    # The one that is done takes all that the other was not sent.
    machines[0].go.set()
    wait_until(lambda: len(machines[0].seen) == len(jobs) - 5)
    assert len(machines[1].seen) == 5
    machines[1].go.set()
    for _ in jobs:
        told.get(timeout=30)
    slots.close()


def wait_until(true):
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("reason", ["gone", "made_up"])
def test_what_a_lost_machine_was_doing_is_done_once_more_by_another(reason, tmp_path):
    lost, other = Machine("lost", lasts=1, reason=reason), Machine("other")
    records = run(tmp_path, lost, other)
    assert {record.status for record in records} == {Status.INCORRECT}
    assert lost.ended
    assert not other.ended
    sent = Counter(lost.seen + other.seen)
    assert max(sent.values()) == 2
    assert sum(sent.values()) <= len(records) + lost.measures + lost.prepares


def test_a_job_that_takes_two_machines_with_it_gets_no_third(tmp_path):
    machines = [Machine(f"{number}", lasts=0, reason="gone", prepares=0) for number in range(3)]
    records = run(tmp_path, *machines)
    assert {(record.status, record.reason) for record in records} == {(Status.HARNESS_ERROR, "node_lost")}
    assert max(Counter(name for machine in machines for name in machine.seen).values()) <= 2


def test_what_is_submitted_when_no_machine_is_left_is_told_at_once(tmp_path):
    machine, told = Machine("one", lasts=0, reason="gone"), queue.Queue()
    machine.go.set()
    slots = ClusterSlots([machine], DEVICE, CONFIG, tmp_path / "logs", lambda *end: told.put(end), lambda *_: None)
    jobs = session.plan(CONFIG).jobs
    slots.submit(jobs[:1])
    assert told.get(timeout=30)[1].reason == "node_lost"
    assert not slots.alive
    slots.submit(jobs[1:2])
    assert told.get(timeout=30)[1].reason == "node_lost"
    slots.close()


def test_what_waits_can_be_taken_back_and_what_was_sent_cannot(tmp_path):
    machine, told = Machine("one", prepares=0), queue.Queue()
    slots = ClusterSlots([machine], DEVICE, CONFIG, tmp_path / "logs", lambda *end: told.put(end), lambda *_: None)
    first, second, third = slots.submit(session.plan(CONFIG).jobs[:3])
    wait_until(lambda: machine.seen)
    assert not slots.withdraw(first)
    assert slots.withdraw(second)
    slots.hurry(third, 5)
    assert third.priority == 5
    machine.go.set()
    assert {told.get(timeout=30)[0] for _ in range(2)} == {first, third}
    slots.close()


def test_files_are_laid_out_once_and_go_with_their_last_job(tmp_path):
    (job, *_) = session.plan(corpus_config("honest")).jobs
    shelf = Shelf(tmp_path / "shelf")
    files = packed(job.problem.path), packed(job.candidate.path)
    first, second = (shelf.laid_out(job, *files) for _ in range(2))
    assert first == second
    assert first.candidate.path.read_bytes() == job.candidate.path.read_bytes()
    assert (first.problem.path.name, first.candidate.path.name) == (job.problem.path.name, job.candidate.path.name)
    shelf.release(first)
    assert first.candidate.path.is_file()
    shelf.release(second)
    assert not first.candidate.path.parent.exists()
    assert first.problem.path.is_file()


def long_named(job, tmp_path):
    """The job with a file whose name is as long as a name can be."""
    path = tmp_path / f"{'n' * 252}.py"
    path.write_bytes(job.candidate.path.read_bytes())
    return msgspec.structs.replace(job, candidate=msgspec.structs.replace(job.candidate, path=path))


def test_a_name_as_long_as_a_name_can_be_is_laid_out(tmp_path):
    (job, *_) = session.plan(corpus_config("honest")).jobs
    job = long_named(job, tmp_path)
    shelf = Shelf(tmp_path / "shelf")
    own = shelf.laid_out(job, packed(job.problem.path), packed(job.candidate.path))
    assert own.candidate.fault is None
    assert own.candidate.path.read_bytes() == job.candidate.path.read_bytes()


def test_files_that_find_no_room_cost_their_own_job_alone(tmp_path, monkeypatch):
    (job, *_) = session.plan(corpus_config("honest")).jobs
    shelf = Shelf(tmp_path / "shelf")
    files = packed(job.problem.path), packed(job.candidate.path)
    whole = Path.write_bytes

    def half(path, content):
        whole(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", half)
    own = shelf.laid_out(job, *files)
    assert (own.candidate.fault.status, own.candidate.fault.reason) == (Status.HARNESS_ERROR, "not_copied")
    assert "No space left" in own.candidate.fault.message
    shelf.release(own)
    # Nothing that is half there takes the place of what comes next.
    monkeypatch.undo()
    assert shelf.laid_out(job, *files).problem.path.read_bytes() == job.problem.path.read_bytes()
