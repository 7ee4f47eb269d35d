"""Who is on a card, by a made-up NVML that shows processes of this machine."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.machine import card_users


class NVMLError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch):
    """NVML that shows the processes in its list `shown`, as (pid, bytes)."""
    made = SimpleNamespace(shown=[], NVMLError=NVMLError, nvmlInit=lambda: None)

    def handle(uuid):
        if uuid != "GPU-1":
            raise NVMLError("not found")

    def running(_):
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in made.shown]

    made.nvmlDeviceGetHandleByUUID, made.nvmlDeviceGetComputeRunningProcesses = handle, running
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


@pytest.fixture
def stranger():
    """A process whose ancestors, as far as is asked here, are not ours."""
    with subprocess.Popen(["sleep", "60"]) as process:
        # Between fork and exec it still has our name.
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        yield process.pid
        process.kill()


def test_a_program_is_told_by_number_name_and_memory(nvml, stranger):
    nvml.shown = [(stranger, 3 << 20), (stranger, None)]
    first, second = card_users.on_card("GPU-1")
    assert str(first) == f"sleep, process {stranger}, 3 MiB"
    assert str(second) == f"sleep, process {stranger}"
    assert card_users.on_card("GPU-2") is None


def test_others_are_those_that_are_neither_ours_nor_gone(nvml, stranger, monkeypatch):
    gone = subprocess.Popen(["true"])
    gone.wait()
    with subprocess.Popen(["sleep", "60"]) as own:
        nvml.shown = [(own.pid, 1), (stranger, 1), (gone.pid, 1)]
        found = card_users.others(card_users.on_card("GPU-1"), {own.pid})
        assert [user.pid for user in found] == [stranger]
        # In a container whose numbers are others', one of ours proves that these are not.
        monkeypatch.setattr(card_users, "ALL_PROCESSES", -1)
        assert [user.pid for user in card_users.others(card_users.on_card("GPU-1"), {own.pid})] == [stranger]
        nvml.shown = [(stranger, 1)]
        assert card_users.others(card_users.on_card("GPU-1"), {own.pid}) is None
        own.kill()


def test_nobody_is_nobody_and_not_to_be_told_is_none(nvml):
    assert card_users.others(card_users.on_card("GPU-1"), {os.getpid()}) == []
    assert card_users.others(None, {os.getpid()}) is None
