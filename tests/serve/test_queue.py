"""The queue in front of an evaluator that the test plays: bounds, deadlines, restarts, a disk that takes nothing."""

import os
import sqlite3
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from harness.evaluator.deadlines import Deadlines
from harness.execution.workplace import site
from harness.records import Status
from harness.rewards.rewards import reward
from harness.serve import service as module
from harness.serve.requests import BadRequest, EvaluateRequest
from harness.serve.service import Service, Settings
from tests.conftest import corpus_config
from tests.rewards.test_rewards import failed, passed


class Played:
    """An evaluator whose futures the test ends."""

    def __init__(self, config, report_phase, workplace):
        self.site = site(config)
        self.devices = module.Evaluator.devices
        self.deadlines = Deadlines()
        self.alive = True
        self.futures, self.options = [], []

    def submit(self, problem, candidate, **options):
        self.futures.append(Future())
        self.options.append(options)
        return self.futures[-1]

    def close(self, *, cancel):
        self.deadlines.close()
        for future in self.futures:
            future.cancel()


@pytest.fixture
def make(tmp_path, monkeypatch):
    Played.devices = [SimpleNamespace(name="made up", spec="cpu")]
    monkeypatch.setattr(module, "Evaluator", Played)
    made = []

    def one(**settings):
        ended = threading.Event()
        service = Service(corpus_config(), tmp_path, Settings(**settings), lambda identity: ended.set())
        service.heard = ended
        made.append(service)
        return service

    yield one
    for service in made:
        service.close()


def request(number=0, **more):
    return EvaluateRequest(candidate=f"number {number}", problem="toy/scale", **more)


def submit(service, *requests):
    return service.submit(requests, time.time())


def test_a_full_queue_refuses_and_has_room_again(make):
    service = make(queue=2)
    first, _ = submit(service, request(0), request(1))
    with pytest.raises(BadRequest) as refused:
        submit(service, request(2))
    assert refused.value.status == 429
    assert refused.value.retry_after_s >= 1
    service.evaluator.futures[0].set_result(passed(2.0))
    assert service.task(first.id).record.speedup == 2.0
    submit(service, request(2))
    # What has a result needs no room.
    (cached,) = submit(service, request(0))
    assert (cached.status, cached.cached) == ("completed", True)
    with pytest.raises(BadRequest) as refused:
        submit(service, request(3), request(4), request(5))
    assert refused.value.status == 413


def test_a_deadline_counts_from_the_arrival_and_who_waited_too_long_has_its_name(make):
    service = make()
    (task,) = service.submit([request(deadline_s=5.0, name="mine")], time.time() - 4.0)
    assert 0 < service.evaluator.options[0]["deadline_s"] <= 1.0
    service.evaluator.futures[0].set_result(failed(Status.HARNESS_ERROR, "deadline"))
    record = service.task(task.id).record
    assert (record.status, record.reason, reward(record)) == (Status.HARNESS_ERROR, "deadline", None)
    assert (record.problem, record.candidate) == ("toy/scale", "mine")
    assert (service.length, service.counts["expired"]) == (0, 1)
    # It is no result for others.
    assert submit(service, request(name="mine"))[0].status == "pending"


def test_what_is_late_when_a_service_comes_back_is_asked_for_all_the_same(make):
    service = make()
    (task,) = service.submit([request(deadline_s=5.0)], time.time() - 9.0)
    assert 0 < service.evaluator.options[0]["deadline_s"] < 0.1
    assert service.task(task.id).status == "pending"


def test_an_error_of_the_harness_is_no_result_for_others(make):
    service = make()
    (task,) = submit(service, request())
    service.evaluator.futures[0].set_result(failed(Status.HARNESS_ERROR, "judge_lost"))
    assert service.task(task.id).record.reason == "judge_lost"
    assert submit(service, request())[0].status == "pending"


def test_the_next_service_takes_up_what_was_accepted_and_nothing_else(make):
    service = make()
    done, waiting, cancelled = submit(service, request(0), request(1), request(2))
    service.evaluator.futures[0].set_result(passed(2.0))
    service.cancel(cancelled.id)
    service.close()
    again = make()
    assert len(again.evaluator.futures) == 1
    again.evaluator.futures[0].set_result(passed(5.0))
    assert [again.task(one.id).status for one in (done, waiting, cancelled)] == ["completed", "completed", "cancelled"]
    assert again.task(waiting.id).record.speedup == 5.0


def test_an_end_that_the_disk_does_not_take_is_written_later(make, monkeypatch):
    monkeypatch.setattr(module, "WRITE_AGAIN_S", 0.1)
    service = make()
    (task,) = submit(service, request())
    end, faults = service._store.end, [sqlite3.OperationalError("disk is full")] * 2

    def full(*arguments):
        if faults:
            raise faults.pop()
        return end(*arguments)

    monkeypatch.setattr(service._store, "end", full)
    service.evaluator.futures[0].set_result(passed(2.0))
    assert service.heard.wait(10.0)
    assert service.task(task.id).record.speedup == 2.0


def test_a_submission_while_the_service_ends_is_refused_and_told_when_to_come_again(make):
    service = make()
    (task,) = submit(service, request())
    service.close()
    with pytest.raises(BadRequest) as refused:
        submit(service, request(1))
    assert (refused.value.status, refused.value.retry_after_s > 0) == (503, True)
    assert make().task(task.id).status == "pending"


def test_tasks_that_the_disk_has_no_room_for_are_refused(make):
    service = make(disk_bytes=100_000)
    with pytest.raises(BadRequest) as refused:
        submit(service, EvaluateRequest(candidate=os.urandom(50_000).hex(), problem="toy/scale"))
    assert (refused.value.status, refused.value.retry_after_s > 0) == (429, True)
    assert submit(service, request())[0].status == "pending"


def test_problems_by_source_are_for_the_operator_to_allow(make):
    source = EvaluateRequest(candidate="x", problem_source="y")
    service = make()
    with pytest.raises(BadRequest) as refused:
        submit(service, source)
    assert refused.value.status == 403
    service.close()
    assert submit(make(allow_problem_source=True), source)[0].status == "pending"


@pytest.mark.parametrize("variable", ["CXXFLAGS", "CPATH"])
def test_a_result_is_not_kept_for_another_compiler(make, monkeypatch, variable):
    service = make()
    submit(service, request())
    service.evaluator.futures[0].set_result(failed(Status.COMPILE_ERROR, "compiler"))
    assert submit(service, request())[0].status == "completed"
    service.close()
    monkeypatch.setenv(variable, "/elsewhere")
    assert submit(make(), request())[0].status == "pending"


@pytest.mark.parametrize("reason", ["needs_compiler", "missing_headers", "missing_module:triton"])
def test_what_the_machine_lacked_is_no_result_for_others(make, reason):
    service = make()
    submit(service, request())
    service.evaluator.futures[0].set_result(failed(Status.UNSUPPORTED, reason))
    assert submit(service, request())[0].status == "pending"


def test_a_request_that_is_sent_again_is_the_same_task_though_its_problem_was_changed(make, monkeypatch):
    service = make()
    (first,) = submit(service, request(0, task_id="mine"))
    monkeypatch.setattr(service._contents, "digest", lambda request: f"another of {request.candidate}")
    assert [task.id for task in submit(service, request(0, task_id="mine"))] == [first.id]
    with pytest.raises(BadRequest, match="another submission"):
        submit(service, request(1, task_id="mine"))


def test_what_a_task_depends_on_is_looked_at_once_while_it_is_accepted(make, monkeypatch):
    """Not under the service's lock."""
    service, looked = make(), []
    digest = service._contents.digest
    monkeypatch.setattr(service._contents, "digest", lambda request: looked.append(1) or digest(request))
    submit(service, request(0))
    assert len(looked) == 1
