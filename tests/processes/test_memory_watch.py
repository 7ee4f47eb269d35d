"""Host memory watched from outside: who is too large, and who goes when the machine runs out."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.links.freezer import Freezer
from harness.processes import memory_floor, memory_watch
from harness.wire.causes import MOST_OF_IT, OVER_LIMIT, SHORTAGE

MIB = 1 << 20


@contextmanager
def process(code):
    """A Python process that has printed a line after `code`."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('ready', flush=True)\nimport time; time.sleep(60)"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert child.stdout.readline()
        yield child.pid
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def test_its_own_memory_counts_and_shared_memory_does_not():
    shared = "import mmap; kept = mmap.mmap(-1, 200 << 20); kept.write(b'x' * (200 << 20))"
    with process("kept = b'x' * (200 << 20)") as large, process(shared) as small:
        assert memory_watch.private_bytes(large) > 200 * MIB
        assert memory_watch.private_bytes(small) < 100 * MIB
        assert memory_watch.Watch().too_large({large: 100 * MIB, small: 100 * MIB}) == {large: OVER_LIMIT}
        assert memory_watch.Watch().too_large({large: 10**15, small: 10**15}) == {}
        assert memory_watch.Watch().too_large({}) == {}


def test_what_forked_processes_share_counts_once():
    family = "import os, time\nkept = b'x' * (200 << 20)\n"
    family += "for _ in range(6):\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)"
    with process(family) as parent:
        assert memory_watch.family_bytes(parent) > 1000 * MIB
        assert 200 * MIB < sum(map(memory_watch.own_share_bytes, Freezer(parent).members())) < 400 * MIB
        assert memory_watch.Watch().too_large({parent: 600 * MIB}) == {}
        assert memory_watch.Watch().too_large({parent: 150 * MIB}) == {parent: OVER_LIMIT}


def test_a_long_look_ends_and_the_next_one_waits(monkeypatch):
    looks = []
    monkeypatch.setattr(memory_watch, "own_share_bytes", lambda pid: looks.append(pid) or time.sleep(0.01) or 0)
    monkeypatch.setattr(memory_watch, "LOOK_S", 0.0)
    family = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)"
    monkeypatch.setattr(memory_watch, "REST", 1e9)
    with process(family) as parent:
        watch = memory_watch.Watch()
        assert [watch.too_large({parent: 1}) for _ in range(3)] == [{}, {}, {}]
        # One member, in one look.
        assert len(looks) == 1
        # Another family need not wait for that.
        assert watch.too_large({parent: 1, os.getpid(): 1}) == {}
        assert len(looks) == 2


def test_what_each_of_many_processes_maps_for_itself_counts_for_each():
    """The largest of them alone would hide the others."""
    family = "import mmap, os, sys, time\n"
    family += "for _ in range(4):\n    if os.fork() == 0:\n        kept = mmap.mmap(-1, 50 << 20)\n"
    family += "        kept.write(b'x' * (50 << 20))\n        time.sleep(60)\n        os._exit(0)\n"
    together = family.replace("for _", "kept = mmap.mmap(-1, 50 << 20)\nkept.write(b'x' * (50 << 20))\nfor _").replace(
        "        kept = mmap.mmap(-1, 50 << 20)\n        kept.write(b'x' * (50 << 20))", "        kept[::4096]"
    )
    for code, least, most in ((family, 200, 250), (together, 50, 60)):
        with process(f"{code}time.sleep(1)") as parent:
            assert least * 0.99 * MIB < memory_watch.shared_bytes(parent, time.monotonic() + 10, {}) < most * MIB


def test_who_has_many_processes_is_looked_at_less_often(monkeypatch):
    with process("") as leader:
        watch = memory_watch.Watch()
        watch.too_large({leader: 10**15})
        assert watch.pause_s == memory_watch.WATCH_S
        for look_s, pause_s in ((0.05, 0.45), (2.0, memory_watch.LONGEST_PAUSE_S)):
            clock = iter((0.0, look_s))
            with monkeypatch.context() as patch:
                patch.setattr(time, "process_time", lambda clock=clock: next(clock))
                watch.too_large({leader: 10**15})
            assert watch.pause_s == pytest.approx(pause_s)


def test_memory_counts_whose_first_thread_has_ended():
    leaves = "import ctypes, os, threading, time\nkept = b'x' * (200 << 20)\n"
    leaves += "threading.Thread(target=lambda: (print('go', flush=True), time.sleep(60))).start()\n"
    leaves += "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)"
    with process(leaves) as leader:
        deadline = time.monotonic() + 10
        while Path(f"/proc/{leader}/statm").read_text().split()[1] != "0" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert memory_watch.private_bytes(leader) > 200 * MIB
        assert memory_watch.Watch().too_large({leader: 150 * MIB}) == {leader: OVER_LIMIT}


def test_memory_counts_of_what_a_thread_has_started():
    family = """
import subprocess, sys, threading
code = "kept = b'x' * (200 << 20); print(1, flush=True); import time; time.sleep(60)"
def work():
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    ready.set()
    child.wait()
ready = threading.Event()
threading.Thread(target=work).start()
ready.wait()
"""
    with process(family) as parent:
        assert memory_watch.family_bytes(parent) > 200 * MIB


def test_when_the_machine_runs_out_the_largest_family_goes(monkeypatch):
    family = "import subprocess, sys\n"
    family += "child = subprocess.Popen([sys.executable, '-c', 'kept = b\"x\" * (300 << 20); print(1, flush=True); "
    family += "import time; time.sleep(60)'], stdout=subprocess.PIPE); child.stdout.readline()"
    with process("kept = b'x' * (100 << 20)") as alone, process(family) as parent:
        assert memory_watch.private_bytes(parent) < 100 * MIB < 300 * MIB < memory_watch.family_bytes(parent)
        assert memory_watch.Watch().too_large({alone: 200 * MIB, parent: 200 * MIB}) == {parent: OVER_LIMIT}
        assert memory_watch.Watch().too_large({alone: 10**15, parent: 10**15}) == {}
        monkeypatch.setattr(memory_watch, "memory", lambda: (10**12, 10**9))
        assert memory_watch.Watch().too_large({alone: 10**15, parent: 10**15}) == {parent: SHORTAGE}
        monkeypatch.setattr(memory_watch, "memory", lambda: (10**12, 6 * 10**8))
        assert memory_watch.Watch().too_large({alone: 10**15, parent: 10**15}) == {parent: MOST_OF_IT}


def test_when_the_machine_runs_out_what_forked_processes_share_counts_once(monkeypatch):
    """A pool of workers that do nothing counted as what they were forked from, each of them."""
    family = "import os, time\nkept = b'x' * (200 << 20)\n"
    family += "for _ in range(6):\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)"
    with process("kept = b'x' * (400 << 20)") as alone, process(family) as parent:
        assert memory_watch.family_bytes(parent) > 1000 * MIB
        monkeypatch.setattr(memory_watch, "memory", lambda: (10**12, 10**9))
        assert memory_watch.Watch().too_large({alone: 10**15, parent: 10**15}) == {alone: SHORTAGE}


PAGE_TABLES = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
size = 60 << 30
at = libc.mmap(None, size, 1, 0x4022, -1, 0)
libc.madvise(at, size, 15)
# Reading brings no memory but a page of zeros that all share, and a table of 4 KiB for each 2 MiB.
for offset in range(0, size, 1 << 21):
    ctypes.c_char.from_address(at + offset).value
"""


def test_page_tables_count():
    with process(PAGE_TABLES) as leader:
        assert memory_watch.private_bytes(leader) > 120 * MIB
        assert memory_watch.own_share_bytes(leader) > 120 * MIB
        assert memory_watch.Watch().too_large({leader: 110 * MIB}) == {leader: OVER_LIMIT}


@pytest.mark.parametrize(
    "taken",
    [
        "import os; file = os.memfd_create('x'); os.write(file, b'x' * (200 << 20))",
        "import os; file = os.open(f'/dev/shm/{os.getpid()}', os.O_CREAT | os.O_RDWR); "
        "os.unlink(f'/dev/shm/{os.getpid()}'); os.write(file, b'x' * (200 << 20))",
        "import mmap; kept = mmap.mmap(-1, 200 << 20); kept.write(b'x' * (200 << 20))",
        "import socket; kept = [socket.socketpair() for _ in range(450)]; [end.setblocking(False) for pair in kept for "
        "end in pair]; [end.send(b'x' * 150_000) for pair in kept for end in pair]",
    ],
    ids=["memfd", "deleted", "mapped", "sockets"],
)
def test_when_the_machine_runs_out_files_in_memory_are_somebody_s_too(monkeypatch, taken):
    monkeypatch.setattr(memory_watch, "memory", lambda: (10**12, 10**9))
    with process("kept = b'x' * (100 << 20)") as honest, process(taken) as other:
        assert memory_watch.private_bytes(other) < 100 * MIB
        assert memory_watch.Watch().too_large({honest: 10**15, other: 10**15}).keys() == {other}


def test_whom_candidates_are_judged_by_goes_after_all_of_them(monkeypatch):
    monkeypatch.setattr(memory_watch, "nearly_out", lambda: True)
    with process("kept = b'x' * (100 << 20)") as baseline, process("pass") as candidate:
        both = {baseline: 10**15, candidate: 10**15}
        assert memory_watch.Watch().too_large(both, {baseline}).keys() == {candidate}
        assert memory_watch.Watch().too_large({baseline: 10**15}, {baseline}).keys() == {baseline}
        # What is over its own limit is not spared.
        assert memory_watch.Watch().too_large({baseline: 1, candidate: 10**15}, {baseline}) == {baseline: OVER_LIMIT}


@pytest.mark.parametrize(
    ("now", "at_first", "came_back"),
    [([100], 100, True), ([10, 20, 61], 100, True), ([10, 55], 100, False), ([10], 10, False), ([10], 5, False)],
)
def test_who_had_the_memory_is_told_by_what_comes_back(now, at_first, came_back, monkeypatch):
    monkeypatch.setattr(memory_watch, "SETTLING_S", 0.1)
    figures = iter(now)
    monkeypatch.setattr(memory_watch, "memory", lambda: (1000, next(figures, now[-1])))
    assert memory_watch.came_back(at_first, 10) is came_back


def test_a_process_that_is_gone_has_none():
    with process("pass") as pid:
        pass
    assert memory_watch.private_bytes(pid) == 0
    assert memory_watch.Watch().too_large({pid: 0}) == {}


def test_the_machine_s_memory_is_read_in_bytes():
    total, available = memory_watch.memory()
    assert 0 < available <= total
    assert total == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.05)


def test_nobody_else_goes_while_the_largest_gives_its_memory_back(monkeypatch):
    """Gigabytes take longer than a look comes after the last one."""
    monkeypatch.setattr(memory_watch, "nearly_out", lambda: True)
    monkeypatch.setattr(memory_watch, "SETTLING_S", 0.2)
    with process("kept = b'x' * (100 << 20)") as large, process("pass") as small:
        watch = memory_watch.Watch()
        both = {large: 10**15, small: 10**15}
        assert [watch.too_large(both) for _ in range(3)] == [{large: SHORTAGE}, {}, {}]
        # Its process is gone, and what it had takes a moment more.
        assert watch.too_large({small: 10**15}) == {}
        time.sleep(0.3)
        assert watch.too_large({small: 10**15}) == {small: SHORTAGE}


def test_nobody_goes_for_one_that_ends_by_itself(monkeypatch):
    monkeypatch.setattr(memory_watch, "nearly_out", lambda: True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    try:
        # It is there, and has nothing any more.
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with process("pass") as other:
            watch = memory_watch.Watch()
            both = {ended.pid: 10**15, other: 10**15}
            assert [watch.too_large(both) for _ in range(2)] == [{}, {}]
            # One that cannot end holds nobody else back for ever.
            monkeypatch.setattr(memory_watch, "ENDING_S", 0.0)
            assert watch.too_large(both) == {other: SHORTAGE}
    finally:
        ended.wait()


@pytest.mark.parametrize(("said", "share"), [("0.1", 0.1), ("0", 0.03), ("much", 0.03), ("7", 0.03), ("nan", 0.03)])
def test_more_may_be_asked_to_stay_free(said, share, monkeypatch):
    monkeypatch.setenv(memory_floor.VARIABLE, said)
    assert memory_watch.floor_share() == share
