"""A full disk is no word against whoever noticed it: tried again alone, then by the next run."""

import errno
import os
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest

from harness import environment, session
from harness.config import BuildConfig
from harness.execution import pool
from harness.execution.local import LocalExecutor
from harness.processes import folders
from harness.processes.nursery import Nursery
from harness.records import Outcome, Status
from harness.supervise import builds, disk
from harness.supervise.builds import BuildResult, Workshop
from harness.supervise.evaluation import Evaluator
from harness.supervise.lanes import Lanes
from harness.supervise.second_chance import SecondChance
from harness.supervise.supervisor import Supervisor
from tests.conftest import corpus_config

SAID = "fatal error: error writing to /tmp/x.s: No space left on device"
NO_ROOM = Outcome(status=Status.COMPILE_ERROR, reason="compiler", message=SAID)
BROKEN = Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="a.cpp:3: expected ';'")
HONEST = ("honest", "honest_after", "honest_cpp")

JOB = SimpleNamespace(group="one")


@pytest.fixture
def level(monkeypatch):
    """Whether the disk is nearly full, to be set by a test."""
    state = {"full": False}
    monkeypatch.setattr(disk, "is_full", lambda folder: state["full"])
    return state


@pytest.mark.parametrize(
    ("outcome", "nearly_full", "blame"),
    [
        (NO_ROOM, False, True),
        (BROKEN, False, False),
        (BROKEN, True, True),
        (msgspec.structs.replace(BROKEN, evidence={"output_tail": SAID}), False, True),
        (Outcome(status=Status.REJECTED, reason="protocol", message=f"no library: {SAID}"), False, True),
        (Outcome(status=Status.INVALID_REFERENCE, reason="exception:OSError", message=SAID), False, True),
        (Outcome(status=Status.INCORRECT, reason="mismatch", message="wrong"), True, False),
        (Outcome(status=Status.PASSED, reason="", message=""), True, False),
        (None, True, False),
    ],
)
def test_what_a_full_disk_may_be_to_blame_for(outcome, nearly_full, blame, level, tmp_path):
    level["full"] = nearly_full
    assert disk.may_be_to_blame(outcome, tmp_path) is blame


@pytest.mark.parametrize(("are_open", "full"), [(100, False), (899, False), (901, True)])
def test_whoever_meets_the_machine_s_table_of_open_files_full_is_not_to_blame(tmp_path, monkeypatch, are_open, full):
    table = tmp_path / "file-nr"
    table.write_text(f"{are_open}\t0\t1000\n")
    monkeypatch.setattr(disk, "OPEN_FILES", table)
    said = f"[Errno 23] {os.strerror(errno.ENFILE)}: 'weights.bin'"
    met = Outcome(status=Status.LOAD_ERROR, reason="exception:OSError", message=said)
    assert disk.is_full(tmp_path) is full
    assert disk.may_be_to_blame(met, tmp_path)
    # Anybody can say it.
    blamed = disk.blamed(met, tmp_path, others=False)
    assert blamed.status is (Status.HARNESS_ERROR if full else Status.LOAD_ERROR)
    assert ("as many files open as it may" in blamed.message) is full


def test_the_free_room_is_that_of_the_folder_s_disk(tmp_path, monkeypatch):
    assert not disk.is_full(tmp_path)
    room = os.statvfs(tmp_path)
    for name, few in (("NEARLY_FULL_BYTES", room.f_bavail * room.f_frsize * 2), ("NEARLY_FULL_FILES", 1 << 62)):
        with monkeypatch.context() as patch:
            patch.setattr(disk, name, few)
            assert disk.is_full(tmp_path) or (name == "NEARLY_FULL_FILES" and not room.f_files)


@pytest.mark.parametrize(
    ("removing", "full", "unwanted", "waits"),
    [(True, True, False, True), (True, False, False, False), (False, True, False, False), (True, True, True, False)],
)
def test_who_finds_it_full_waits_for_what_is_being_removed(
    tmp_path, monkeypatch, level, removing, full, unwanted, waits
):
    monkeypatch.setattr(disk, "ROOM_S", 0.3)
    monkeypatch.setattr(folders, "removing", lambda: removing)
    level["full"] = full
    begun = time.monotonic()
    disk.wait_for_room(tmp_path, lambda: unwanted)
    assert (time.monotonic() - begun >= 0.3) is waits


@pytest.mark.parametrize("raised", [False, True])
def test_a_candidate_after_one_whose_files_go_slowly_is_judged_when_there_is_room(tmp_path, monkeypatch, level, raised):
    monkeypatch.setattr(folders, "removing", lambda: level["full"])
    wrong = Outcome(status=Status.INCORRECT, reason="mismatch", message="wrong")

    class Finds:
        def once(self, job, build, phases, **how):
            calls.append(level["full"])
            if len(calls) > 1:
                return wrong, None
            # Another one's files, which go a moment later.
            level["full"] = True
            threading.Timer(0.5, level.update, [{"full": False}]).start()
            if raised:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return NO_ROOM, None

    class NoGroups:
        def end(self):
            pass

    calls = []
    device = environment.choose_devices("cpu")[0]
    chance = SecondChance(Finds(), NoGroups(), device, corpus_config("honest"), None, tmp_path, Lanes())
    assert chance.conclude(JOB, BuildResult(), None).outcome == wrong
    assert calls == [False, False]


def test_a_candidate_that_fills_it_for_itself_is_not_excused_by_how_slowly_its_files_go(tmp_path, monkeypatch, level):
    monkeypatch.setattr(folders, "removing", lambda: level["full"])

    class Fills:
        def once(self, job, build, phases, **how):
            level["full"] = True
            threading.Timer(0.3, level.update, [{"full": False}]).start()
            return NO_ROOM, None

    class NoGroups:
        def end(self):
            pass

    device = msgspec.structs.replace(environment.choose_devices("cpu")[0], kind="cuda")
    chance = SecondChance(Fills(), NoGroups(), device, corpus_config("honest"), None, tmp_path, Lanes())
    assert chance.conclude(JOB, BuildResult(), None).outcome == NO_ROOM


def run(tmp_path, monkeypatch, build, slots=2):
    monkeypatch.setattr(builds, "needs_build", lambda job: True)
    monkeypatch.setattr(Workshop, "build", build)
    monkeypatch.setattr(Supervisor, "evaluate", lambda self, job, made: (job.candidate.name, made.fault))
    monkeypatch.setattr(pool, "with_texts", lambda record, change: record)
    monkeypatch.setattr(pool, "_may_have_broken", lambda record: False)
    config = corpus_config(*HONEST, build=BuildConfig(slots=slots))
    executor = LocalExecutor(environment.choose_devices("cpu"), config, tmp_path / "logs", 0)
    return dict(executor.run(session.plan(config).jobs, lambda *_: None))


@pytest.mark.parametrize("by", ["said", "raised"])
def test_a_build_that_found_no_room_beside_others_is_repeated_without_them(tmp_path, monkeypatch, level, by):
    others = threading.Event()
    begun, beside, lock = [], [], threading.Lock()

    def build(self, job, nursery, folder, log, card):
        with lock:
            begun.append(job.candidate.name)
            beside.append(job.candidate.name)
            crowd = list(beside)
        try:
            if job.candidate.name == "honest":
                # Fills the disk, until the others have noticed it.
                others.wait(5.0)
                return BuildResult()
            if "honest" in crowd:
                others.set()
                if by == "raised":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return BuildResult(fault=NO_ROOM)
            assert crowd == [job.candidate.name]
            return BuildResult()
        finally:
            with lock:
                beside.remove(job.candidate.name)

    assert run(tmp_path, monkeypatch, build) == dict.fromkeys(HONEST)
    assert len(begun) > len(HONEST)


@pytest.mark.parametrize(("still_full", "status"), [(True, Status.HARNESS_ERROR), (False, Status.COMPILE_ERROR)])
def test_no_room_even_alone_is_final_only_where_the_disk_has_room_again(
    tmp_path, monkeypatch, level, still_full, status
):
    level["full"] = still_full
    faults = run(tmp_path, monkeypatch, lambda *_: BuildResult(fault=NO_ROOM))
    assert {fault.status for fault in faults.values()} == {status}
    if still_full:
        fault = faults["honest"]
        assert fault.reason == "disk_full"
        assert "set TMPDIR" in fault.message
        assert SAID in fault.message


def test_others_may_have_filled_it(level, tmp_path):
    fault = disk.blamed(NO_ROOM, tmp_path, others=True)
    assert (fault.status, fault.reason) == (Status.HARNESS_ERROR, "disk_full")


def test_words_alone_excuse_nobody(level, tmp_path):
    assert disk.blamed(NO_ROOM, tmp_path, others=False) == NO_ROOM
    level["full"] = True
    assert disk.blamed(NO_ROOM, tmp_path, others=False).reason == "disk_full"


@pytest.mark.parametrize(
    ("on_a_card", "was_full", "status"),
    [(True, True, Status.HARNESS_ERROR), (True, False, Status.LOAD_ERROR), (False, True, Status.LOAD_ERROR)],
)
def test_whose_disk_it_was_is_seen_and_not_said(tmp_path, level, on_a_card, was_full, status):
    fault = Outcome(status=Status.LOAD_ERROR, reason="disk_full", message=SAID)

    class Fails:
        def once(self, job, build, phases, **how):
            level["full"] = was_full and not calls
            calls.append(job)
            return fault, None

    class NoGroups:
        def end(self):
            pass

    calls = []
    device = environment.choose_devices("cpu")[0]
    device = msgspec.structs.replace(device, kind="cuda" if on_a_card else "cpu")
    chance = SecondChance(Fails(), NoGroups(), device, corpus_config("honest"), None, tmp_path, Lanes())
    assert chance.conclude(JOB, BuildResult(), None).outcome.status is status
    assert len(calls) == 2


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("raised", [False, True])
def test_a_candidate_that_finds_no_room_is_evaluated_once_more(tmp_path, monkeypatch, level, times, raised):
    once, left = Evaluator.once, [None] * times
    level["full"] = not raised
    fault = Outcome(status=Status.LOAD_ERROR, reason="exception:OSError", message=f"honest.py:3: {SAID}")

    def fails_at_first(self, job, build, phases, **how):
        if not left:
            level["full"] = False
            return once(self, job, build, phases, **how)
        left.pop()
        if raised:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return fault, None

    monkeypatch.setattr(Evaluator, "once", fails_at_first)
    config = corpus_config("honest")
    nursery = Nursery()
    supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
    try:
        record = supervisor.evaluate(session.plan(config).jobs[0], BuildResult())
    finally:
        supervisor.close()
        nursery.close()
    if times == 2:
        assert (record.status, record.reason) == (Status.HARNESS_ERROR, "disk_full")
    else:
        assert record.status is Status.PASSED
        assert "evaluated_again: the disk was full" in record.warnings
