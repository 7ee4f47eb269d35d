import os
import time

import pytest

from harness.machine import host_card, procfs
from harness.machine.card import Watch
from harness.machine.host_card import HostCard


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A processor made of files, with two cores that this process may use."""
    monkeypatch.setattr(procfs, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host_card, "SYS_CPU", tmp_path / "cpu")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/loadavg", "1.25 0.5 0.2 1/100 4242\n")
    write("proc/stat", "cpu 9 9 9 9\ncpu0 100 0 0 500 0 0 0 0 0 0\ncpu1 100 0 0 500 0 0 0 0 0 0\ncpu2 9 0 0 9 0 0 0\n")
    return write


def test_host_state(machine):
    machine("cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n")
    machine("cpu/cpu1/cpufreq/scaling_cur_freq", "3100000\n")
    machine("cpu/cpu0/thermal_throttle/core_throttle_count", "3\n")
    machine("cpu/cpu1/thermal_throttle/package_throttle_count", "4\n")
    state = HostCard().state()
    assert (state.clock_mhz, state.throttle_events, state.load_1min, state.others_share) == (3100, 7, 1.25, None)


def test_a_virtual_machine_does_not_know_its_clock(machine):
    machine("proc/cpuinfo", "flags : fpu\ncpu MHz : 2700.1\ncpu MHz\t: 2900.4\n")
    assert HostCard().state().clock_mhz == 2900
    machine("proc/cpuinfo", "flags : fpu hypervisor\ncpu MHz\t: 2700.0\n")
    assert HostCard().state().clock_mhz is None


def test_others_on_the_host_are_all_but_our_family(machine, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    stat = "{} (a) b) S 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1\n"
    machine("proc/10/stat", stat.format(10, 5))
    machine("proc/10/task/10/children", "11 ")
    machine("proc/11/stat", stat.format(11, 50))
    host = HostCard(own_pids=[10])
    assert host.state().others_share is None
    now[0] += 1.0
    # In one second on two cores 160 ticks were busy, 100 of them ours.
    machine("proc/stat", "cpu0 200 0 0 500 0 0 0 0 0 0\ncpu1 160 0 0 540 0 0 0 0 0 0\n")
    machine("proc/11/stat", stat.format(11, 150))
    assert host.state().others_share == pytest.approx(0.3)
    now[0] += 0.1
    assert host.state().others_share == pytest.approx(0.3)


def test_a_process_of_ours_that_ends_unwaited_for_makes_no_others(machine, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    stat = "{} (a) S 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1\n"
    machine("proc/10/stat", stat.format(10, 5))
    machine("proc/10/task/10/children", "11 12")
    machine("proc/11/stat", stat.format(11, 50))
    machine("proc/12/stat", stat.format(12, 900))
    host = HostCard(own_pids=[10])
    host.state()
    now[0] += 1.0
    machine("proc/stat", "cpu0 200 0 0 500 0 0 0 0 0 0\ncpu1 100 0 0 600 0 0 0 0 0 0\n")
    machine("proc/11/stat", stat.format(11, 150))
    machine("proc/10/task/10/children", "11")
    assert host.state().others_share == 0.0


def test_this_machine_can_be_looked_at():
    watch = Watch(HostCard())
    with watch:
        pass
    assert watch.summary()["looks"] == 2
