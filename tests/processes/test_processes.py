"""The forking parent and its children: exits are reported as they happened, and whole families end."""

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from harness.processes import memory_watch, zygote
from harness.processes import nursery as nursery_room
from harness.processes.nursery import NoProcess, Nursery, ZygoteLost
from harness.records import Status
from harness.sandbox import enforcement
from harness.sandbox.syscalls import PR_SET_DUMPABLE, prctl
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone
from harness.wire.messages import FromBuilder
from tests import kills

ROOT = Path(__file__).resolve().parents[2]


class TidyNursery(Nursery):
    """Hangs up on whatever a test leaves running."""

    def __init__(self, **options):
        super().__init__(**options)
        self.started = []

    def start(self, *arguments, **options):
        self.started.append(super().start(*arguments, **options))
        return self.started[-1]

    def close(self):
        super().close()
        for child in self.started:
            child.channel.close()


@pytest.fixture
def nursery():
    made = TidyNursery()
    yield made
    made.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone_soon(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def keeper_of(nursery: Nursery) -> int:
    return nursery._process.pid


def zygote_of(nursery: Nursery) -> int:
    (pid,) = kills.children(keeper_of(nursery))
    return pid


def test_a_child_s_signal_is_its_exit_code(nursery, tmp_path):
    child = nursery.start("builder", FromBuilder, tmp_path / "log")
    os.kill(child.pid, signal.SIGSEGV)
    assert child.wait(5.0) == -signal.SIGSEGV
    with pytest.raises(PeerGone):
        child.channel.receive(1.0)


def test_an_exit_code_of_its_own_is_never_taken_for_a_failed_sandbox():
    for code in (70, 71):
        outcome = faults.death(code, "load")
        assert (outcome.status, outcome.reason) == (Status.CRASHED, f"exit:{code}")
    assert faults.death(1, "load", enforcement.CAUSE).status is Status.HARNESS_ERROR


def test_what_runs_in_a_role_has_no_way_to_tell_of_its_start(tmp_path):
    # All that it was started with are its channel and its output; a word on any other descriptor would be one.
    nursery = TidyNursery(layers=("limits",))
    try:
        child = nursery.start("runner", FromBuilder, tmp_path / "log", folder=tmp_path)
        open_ones = Path(f"/proc/{child.pid}/fd")
        deadline = time.monotonic() + 5
        while len(os.listdir(open_ones)) > 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        kinds = [
            os.readlink(path).partition(":")[0] for path in sorted(open_ones.iterdir(), key=lambda one: int(one.name))
        ]
        assert kinds == ["/dev/null", "pipe", "pipe", "socket"]
    finally:
        nursery.close()


def test_a_session_that_hangs_up_while_a_child_starts_is_no_error():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends = socket.socketpair()
    with open(os.devnull, "wb") as output:
        request = zygote.Spawn(id=1, role="builder")
        socket.send_fds(ours, [msgspec.json.encode(request)], [ends[0].fileno(), output.fileno()])
    ours.close()
    command = [sys.executable, "-P", "-m", "harness.processes.zygote", str(theirs.fileno())]
    done = subprocess.run(
        command,
        pass_fds=[theirs.fileno()],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    for end in (theirs, *ends):
        end.close()
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_module_that_is_imported_late_is_compiled_once(tmp_path, monkeypatch):
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms/__init__.py").touch()
    (tmp_path / "rooms/late.py").write_text("raise RuntimeError('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    zygote._keep_bytecode(importlib.import_module("rooms"))
    assert [path.name.partition(".")[0] for path in (tmp_path / "rooms/__pycache__").glob("late.*")] == ["late"]
    assert "rooms.late" not in sys.modules


def test_python_s_places_and_tools_are_named_without_links(tmp_path, monkeypatch):
    """Of a folder below /tmp a confined process sees what it may read, and no link to it."""
    (tmp_path / "real/bin").mkdir(parents=True)
    (tmp_path / "real/bin/python").symlink_to(sys.executable)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link/site"), *sys.path])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "link"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "link/bin/python"))
    monkeypatch.setattr(sys, "exec_prefix", sys.exec_prefix)
    monkeypatch.setenv("PATH", f"{tmp_path}/link/bin:/usr/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    zygote._follow_links()
    assert sys.path[0] == str(tmp_path / "real/site")
    assert sys.prefix == str(tmp_path / "real")
    # A virtual environment is found by the name of its interpreter, which is a link.
    assert sys.executable == str(tmp_path / "real/bin/python")
    assert os.environ["PATH"].startswith(f"{tmp_path}/real/bin:")


def test_hanging_up_ends_a_child_and_its_words_are_in_the_log(nursery, tmp_path):
    child = nursery.start("builder", FromBuilder, tmp_path / "log")
    child.channel.close()
    assert child.wait(5.0) == 70
    assert "PeerGone" in child.log_tail()


def test_a_log_that_is_full_costs_no_more_than_reading_what_is_printed(tmp_path, monkeypatch):
    """The pipe of a candidate that stands still is emptied in the baseline's turn."""
    looked_at = []
    monkeypatch.setattr(nursery_room, "MAX_LOG_BYTES", 100_000)
    read_end, write_end = os.pipe()

    def printed():
        with open(write_end, "wb") as output:
            output.write(b"x" * 1_000_000)

    writer = threading.Thread(target=printed)
    writer.start()
    nursery_room._pump(read_end, tmp_path / "log", threading.Event(), lambda text: looked_at.append(len(text)) or text)
    writer.join()
    assert sum(looked_at) < 200_000
    note = b"\n[more output was dropped]\n"
    assert (tmp_path / "log").read_bytes() == b"x" * 100_000 + note


def test_a_link_in_the_place_of_a_log_is_replaced_and_not_followed(nursery, tmp_path):
    (tmp_path / "bashrc").write_text("the user's")
    (tmp_path / "log").symlink_to(tmp_path / "bashrc")
    child = nursery.start("builder", FromBuilder, tmp_path / "log")
    child.channel.close()
    child.wait(10)
    assert "PeerGone" in child.log_tail()
    assert (tmp_path / "bashrc").read_text() == "the user's"


def test_killing_ends_a_silent_child(nursery, tmp_path):
    child = nursery.start("judge", FromBuilder, tmp_path / "log")
    with pytest.raises(DeadlineExceeded):
        child.channel.receive(0.1)
    assert child.kill() == -signal.SIGKILL
    assert gone_soon(child.pid)


def test_children_are_their_own_session_and_keep_no_foreign_descriptors(nursery, tmp_path):
    first = nursery.start("runner", FromBuilder, tmp_path / "first")
    second = nursery.start("runner", FromBuilder, tmp_path / "second")
    assert os.getsid(first.pid) == first.pid != os.getsid(second.pid)
    # A socket each, and nothing of the other's: hanging up on one must be felt although the other lives.
    first.channel.close()
    assert first.wait(5.0) == 0
    assert alive(second.pid)


@pytest.mark.parametrize("victim", ["zygote", "keeper"])
def test_all_die_with_the_parent_s_death(victim, tmp_path):
    nursery = TidyNursery()
    child = nursery.start("runner", FromBuilder, tmp_path / "log")
    os.kill({"zygote": zygote_of, "keeper": keeper_of}[victim](nursery), signal.SIGKILL)
    assert child.wait(5.0) == -signal.SIGKILL
    assert gone_soon(child.pid)
    with pytest.raises(ZygoteLost):
        nursery.start("runner", FromBuilder, tmp_path / "other")
    nursery.close()


def test_closing_ends_every_child(tmp_path):
    nursery = TidyNursery()
    children = [nursery.start("runner", FromBuilder, tmp_path / str(number)) for number in range(3)]
    nursery.close()
    assert all(gone_soon(child.pid) for child in children)


def test_a_session_that_was_killed_with_news_unread_leaves_no_child(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.fork()
    if parent == 0:
        try:
            ours.close()
            zygote.serve(theirs, {"judge": lambda channel: time.sleep(60)})
        finally:
            # Not reached where it has ended tidily.
            os._exit(3)
    theirs.close()
    with open(tmp_path / "log", "w") as log, open(os.devnull) as channel:
        request = msgspec.json.encode(zygote.Spawn(id=1, role="judge"))
        socket.send_fds(ours, [request], [channel.fileno(), log.fileno()])
    assert select.select([ours], [], [], 60.0)[0]
    judge = msgspec.json.decode(ours.recv(4096, socket.MSG_PEEK), type=zygote.Spawned).pid
    ours.close()
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 0
    assert gone_soon(judge)


def test_judges_and_the_forking_parent_are_closed_to_their_own_user(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.fork()
    if parent == 0:
        ours.close()
        if os.geteuid() == 0:
            os.setresuid(12345, 12345, 12345)
        prctl(PR_SET_DUMPABLE, 1)
        zygote.serve(theirs, {"judge": lambda channel: time.sleep(60)})
        os._exit(0)
    theirs.close()
    try:
        with open(tmp_path / "log", "w") as log, open(os.devnull) as channel:
            request = msgspec.json.encode(zygote.Spawn(id=1, role="judge"))
            socket.send_fds(ours, [request], [channel.fileno(), log.fileno()])
        judge = msgspec.json.decode(ours.recv(4096), type=zygote.Spawned).pid
        # What may not be dumped belongs to root: memory, environment, descriptors.
        assert [Path(f"/proc/{pid}/mem").stat().st_uid for pid in (parent, judge)] == [0, 0]
        assert f"Uid:\t{12345 if os.geteuid() == 0 else os.geteuid()}" in Path(f"/proc/{judge}/status").read_text()
    finally:
        ours.close()
        os.waitpid(parent, 0)
    assert gone_soon(judge)


def test_a_user_s_secrets_reach_no_process(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_TEST_TOKEN", "a secret of the user's")
    nursery = TidyNursery()
    try:
        child = nursery.start("runner", FromBuilder, tmp_path / "log")
        for pid in (child.pid, nursery._process.pid, zygote_of(nursery)):
            # Closed to an ordinary user, anyhow.
            with contextlib.suppress(PermissionError):
                assert b"ASSAY_TEST_TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        nursery.close()


def test_a_child_that_takes_too_much_memory_is_ended_and_the_cause_told(tmp_path):
    nursery = TidyNursery(memory_bytes=1 << 20)
    try:
        child = nursery.start("runner", FromBuilder, tmp_path / "log")
        assert child.wait(10.0) == -signal.SIGKILL
        assert child.cause == "host_memory"
        judge = nursery.start("judge", FromBuilder, tmp_path / "judge")
        assert judge.wait(1.0) is None
    finally:
        nursery.close()


def test_nobody_waits_for_a_look_at_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_watch.Watch, "too_large", lambda *_: time.sleep(60))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(20.0)
    parent = os.fork()
    if parent == 0:
        ours.close()
        zygote.serve(theirs, {"runner": lambda channel: time.sleep(60)})
    theirs.close()
    try:
        for number in (1, 2):
            with open(tmp_path / "log", "w") as log, open(os.devnull) as channel:
                request = msgspec.json.encode(zygote.Spawn(id=number, role="runner", memory_bytes=1 << 40))
                socket.send_fds(ours, [request], [channel.fileno(), log.fileno()])
            assert msgspec.json.decode(ours.recv(4096), type=zygote.Spawned).id == number
            # The watch has begun.
            time.sleep(0.05)
    finally:
        ours.close()
        os.waitpid(parent, 0)


def test_a_child_that_cannot_be_forked_is_told_of_and_the_next_one_starts(tmp_path, monkeypatch):
    fork, calls = os.fork, []

    def some_forks():
        calls.append(1)
        # After the watch's.
        if len(calls) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(20.0)
    parent = fork()
    if parent == 0:
        ours.close()
        os.fork = some_forks
        zygote.serve(theirs, {"runner": lambda channel: time.sleep(60)})
    theirs.close()
    answers = []
    for number in (1, 2):
        with open(tmp_path / "log", "w") as log, open(os.devnull) as channel:
            request = msgspec.json.encode(zygote.Spawn(id=number, role="runner"))
            socket.send_fds(ours, [request], [channel.fileno(), log.fileno()])
        answers.append(msgspec.json.decode(ours.recv(4096), type=zygote.Spawned | zygote.Exited))
    ours.close()
    os.waitpid(parent, 0)
    assert answers[0] == zygote.Exited(id=1, code=1, cause=zygote.NO_PROCESS)
    assert isinstance(answers[1], zygote.Spawned)


def test_no_room_for_a_thread_or_a_process_is_no_end_of_the_session(nursery, tmp_path, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(NoProcess):
            nursery.start("runner", FromBuilder, tmp_path / "log")
    # As the forking parent says it.
    child = nursery.start("runner", FromBuilder, tmp_path / "log")
    assert child.wait(0.0) is None


@pytest.mark.parametrize("readable", [["/\udcff"], ["/" + "x" * 4000] * 100, ["/" + "x" * 2200] * 100])
def test_what_cannot_be_told_of_one_child_is_no_end_of_the_others(readable, tmp_path):
    """Names that are not UTF-8, and more of them than a message, or the kernel's buffer, holds."""
    nursery = TidyNursery(layers=("limits",))
    try:
        first = nursery.start("runner", FromBuilder, tmp_path / "first")
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(NotSendable):
            nursery.start("runner", FromBuilder, tmp_path / "second", readable=readable)
        deadline = time.monotonic() + 5
        while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(os.listdir("/proc/self/fd")) == before
        assert nursery.start("runner", FromBuilder, tmp_path / "third").wait(0.0) is None
        assert first.wait(0.0) is None
    finally:
        nursery.close()


def test_without_the_watch_nothing_goes_on(tmp_path):
    nursery = TidyNursery(memory_bytes=1 << 40)
    try:
        child = nursery.start("runner", FromBuilder, tmp_path / "log")
        (watcher,) = {*kills.children(zygote_of(nursery))} - {child.pid}
        os.kill(watcher, signal.SIGKILL)
        assert child.wait(5.0) == -signal.SIGKILL
        assert gone_soon(child.pid)
        with pytest.raises(ZygoteLost):
            nursery.start("runner", FromBuilder, tmp_path / "other")
    finally:
        nursery.close()


def test_a_layer_that_cannot_be_had_after_all_ends_the_child_before_its_work(tmp_path):
    nursery = TidyNursery(layers=("user", "landlock"))
    try:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        child = nursery.start("runner", FromBuilder, tmp_path / "log", folder=closed, readable=[str(closed / "x.py")])
        if os.geteuid() == 0:
            # Without private mounts, another user cannot pass through a test's own folders.
            assert faults.death(child.wait(10.0), "load", child.cause).status is Status.HARNESS_ERROR
            assert "SandboxFailed: the sandbox layer 'user' failed" in child.log_tail()
    finally:
        nursery.close()
