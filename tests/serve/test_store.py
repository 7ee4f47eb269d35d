"""Tasks on disk: kept whole, ended once, and for one service at a time."""

import time

import pytest

from harness.errors import UsageError
from harness.records import Status
from harness.serve.requests import EvaluateRequest
from harness.serve.store import Store, Stored
from tests.rewards.test_rewards import failed, passed


def task(identity, **changes):
    request = EvaluateRequest(candidate="x", problem="toy/scale")
    fields = {"content": "c", "request": request, "accepted_at": time.time(), "expires_at": time.time() + 60}
    return Stored(id=identity, **(fields | changes))


def test_what_was_accepted_is_there_for_the_next_service(tmp_path):
    store = Store(tmp_path)
    tasks = [task("b", accepted_at=1.0), task("a", accepted_at=2.0), task("c", status="completed", record=passed(2.0))]
    store.accept(tasks)
    assert store.end("b", "completed", failed(Status.CRASHED))
    store.close()
    again = Store(tmp_path)
    assert again.unfinished() == [tasks[1]]
    assert again.task("c") == tasks[2]
    assert again.task("b").record.status is Status.CRASHED
    assert again.task("nobody") is None
    again.close()


def test_a_task_ends_once(tmp_path):
    store = Store(tmp_path)
    store.accept([task("a")])
    assert store.end("a", "cancelled")
    assert not store.end("a", "completed", passed(2.0))
    assert (store.task("a").status, store.task("a").record) == ("cancelled", None)
    store.close()


def test_all_of_a_batch_are_kept_or_none(tmp_path):
    store = Store(tmp_path)
    store.accept([task("a")])
    with pytest.raises(Exception, match="UNIQUE"):
        store.accept([task("b"), task("a")])
    assert store.task("b") is None
    store.close()


def test_results_are_kept_by_content_for_a_time(tmp_path):
    store = Store(tmp_path)
    store.keep("c", failed(Status.CRASHED))
    store.keep("c", passed(2.0))
    assert store.result("c", time.time() - 60).speedup == 2.0
    assert store.result("c", time.time() + 60) is None
    assert store.result("d", 0.0) is None
    store.accept([task("a"), task("open")])
    store.end("a", "completed", passed(2.0))
    store.forget(time.time() + 60)
    assert store.result("c", 0.0) is None
    assert (store.task("a"), store.task("open").status) == (None, "pending")
    store.close()


def test_a_folder_is_one_service_s(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(UsageError, match="another service uses it"):
        Store(tmp_path)
    store.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another folder with --dir"):
        Store(tmp_path / "file")
