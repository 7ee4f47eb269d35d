"""Tasks on disk: kept whole, ended once, and for one service at a time."""

import contextlib
import os
import time

import msgspec
import pytest

from harness.errors import UsageError
from harness.records import Status
from harness.serve.requests import EvaluateRequest
from harness.serve.store import FILE, NoRoom, Store, Stored
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


def test_what_cannot_be_read_any_more_is_told_and_stops_nothing(tmp_path, capsys):
    store = Store(tmp_path)
    store.accept([task("a"), task("b")])
    store._base.execute("UPDATE tasks SET request = x'00' WHERE id = 'a'")
    assert [one.id for one in store.unfinished()] == ["b"]
    assert "'a' of tasks in " in capsys.readouterr().err
    assert [one.id for one in store.unfinished()] == ["b"]
    store.close()


def test_a_record_that_cannot_be_read_any_more_is_none(tmp_path, capsys):
    store = Store(tmp_path)
    store.accept([task("a")])
    store.end("a", "completed", passed(2.0))
    store.keep("c", passed(2.0))
    for table in ("tasks", "results"):
        store._base.execute(f"UPDATE {table} SET record = x'00'")
    assert store.task("a") is None
    assert store.result("c", 0.0) is None
    assert capsys.readouterr().err.count("cannot be read, and is lost") == 2
    store.keep("c", passed(3.0))
    assert store.result("c", 0.0).speedup == 3.0
    store.close()


def test_a_damaged_file_is_told(tmp_path):
    store = Store(tmp_path)
    store.accept([task(f"t{number}") for number in range(200)])
    store.close()
    with (tmp_path / "tasks.sqlite").open("r+b") as file:
        for page in range(3, 12):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    store = Store(tmp_path)
    with pytest.raises(UsageError, match=r"is damaged: .*; move it away"):
        store.unfinished()
    store.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another folder with --dir"):
        Store(tmp_path / "file")


def test_tasks_are_nobody_elses_to_read(tmp_path):
    (tmp_path / FILE).touch(mode=0o644)
    store = Store(tmp_path)
    store.accept([task("a")])
    # Its log, too.
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes.keys() >= {FILE}
    assert set(modes.values()) == {0o600}
    store.close()


@pytest.mark.parametrize("put", [os.symlink, os.link])
@pytest.mark.parametrize("text", ["alias ls=ls", ""])
def test_tasks_are_no_file_of_the_user_s(tmp_path, put, text):
    victim = tmp_path / "bashrc"
    victim.write_text(text)
    victim.chmod(0o755)
    (tmp_path / "serve").mkdir()
    put(victim, tmp_path / "serve" / FILE)
    with pytest.raises(UsageError, match=r"cannot keep tasks in .*; choose another folder with --dir"):
        Store(tmp_path / "serve")
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == (text, 0o755)


def incompressible(identity, length=20_000, **changes):
    request = EvaluateRequest(candidate=os.urandom(length // 2).hex(), problem="toy/scale")
    return task(identity, request=request, **changes)


def test_the_oldest_results_go_where_the_disk_s_share_is_full(tmp_path):
    most_bytes = 1_000_000
    store = Store(tmp_path, most_bytes)
    for number in range(200):
        store.accept([incompressible(str(number))])
        store.end(str(number), "completed", passed(2.0))
        store.keep(str(number), passed(2.0))
    assert (tmp_path / FILE).stat().st_size < 1.1 * most_bytes
    assert (store.task("0"), store.result("0", 0.0)) == (None, None)
    assert all(store.task(str(number)) and store.result(str(number), 0.0) for number in range(180, 200))
    store.close()


def test_tasks_that_have_not_ended_are_never_forgotten_and_take_half_at_most(tmp_path):
    store = Store(tmp_path, 1_000_000)
    with pytest.raises(NoRoom):
        store.accept([incompressible("large", 1_100_000)])
    accepted = []
    with contextlib.suppress(NoRoom):
        for number in range(1000):
            store.accept([incompressible(str(number))])
            accepted.append(str(number))
    assert 30 < len(accepted) < 60
    # What has ended has its room, and what was answered at once is kept there.
    store.accept([msgspec.structs.replace(incompressible("cached"), status="completed", ended_at=1.0)])
    assert [one.id for one in store.unfinished()] == accepted
    store.end("0", "completed", passed(2.0))
    store.accept([incompressible("next")])
    store.close()
