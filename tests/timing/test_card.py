import os
import subprocess
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from harness.timing import card
from harness.timing.card import HostCard, NvmlCard, State, Watch, unusable


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_NotFound(NVMLError):
    pass


class NVMLError_GpuIsLost(NVMLError):
    pass


class FakeNvml(SimpleNamespace):
    """A driver with one card. An answer that is an exception class is raised; `asked` counts the calls."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_SUCCESS = 1, 2, 0, 0
    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported
    NVMLError_NotFound = NVMLError_NotFound

    def __init__(self, **answers):
        super().__init__(answers=answers, asked={})

    def __getattr__(self, name):
        if not name.startswith("nvml"):
            raise AttributeError(name)
        short = name.removeprefix("nvmlDeviceGet")
        if short == "CurrentClocksEventReasons" and short not in self.answers:
            raise AttributeError(name)

        def ask(*args):
            self.asked[short] = self.asked.get(short, 0) + 1
            answer = self.answers.get(short)
            answer = answer(*args) if callable(answer) and not isinstance(answer, type) else answer
            if isinstance(answer, type) and issubclass(answer, Exception):
                raise answer
            return answer

        return ask


def field(number, count, failed=0):
    return SimpleNamespace(fieldId=number, nvmlReturn=failed, value=SimpleNamespace(ullVal=count))


def by_uuid(name):
    if name != "GPU-11aa":
        raise NVMLError_NotFound
    return "handle"


@pytest.fixture
def driver(monkeypatch):
    nvml = FakeNvml(
        HandleByUUID=by_uuid,
        HandleByIndex=lambda index: f"handle {index}",
        ClockInfo=lambda handle, kind: {1: 1980, 2: 3201}[kind],
        PowerUsage=412_345,
        Temperature=61,
        PerformanceState=0,
        CurrentClocksEventReasons=0x1 | 0x2 | 0x4 | 0x40,
        FieldValues=lambda handle, fields: [field(74, 500), field(75, 7), field(269, 9), field(271, 0, failed=3)],
        ComputeRunningProcesses=[SimpleNamespace(pid=os.getpid())],
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_nvml_state(driver):
    state = NvmlCard("11aa").state()
    assert msgspec.structs.replace(state, at_s=0.0) == State(
        kind="cuda",
        at_s=0.0,
        clock_mhz=1980,
        memory_clock_mhz=3201,
        power_w=412.345,
        temperature_c=61,
        pstate=0,
        # Idle and application clocks are settings.
        throttle=("power_cap", "thermal"),
        throttled_ns={"power_cap": 500, "thermal": 9},
        others=0,
        others_share=0.0,
    )
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state


@pytest.mark.parametrize("which", ["11aa", "GPU-11aa", 0])
def test_a_card_by_uuid_or_index(driver, which):
    assert NvmlCard(which).fault == ""


def test_a_mig_slice_by_torchs_uuid(driver):
    def mig(name):
        if not name.startswith("MIG-"):
            raise NVMLError_NotFound
        return "handle"

    driver.answers["HandleByUUID"] = mig
    assert NvmlCard("22bb").state().clock_mhz == 1980


def test_a_card_that_is_not_there(driver, monkeypatch):
    unknown = NvmlCard("ffff")
    assert "no such card" in unknown.fault
    assert unknown.state().clock_mhz is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py" in NvmlCard(0).fault


def test_what_is_not_supported_is_asked_once(driver):
    driver.answers |= {"PowerUsage": NVMLError_NotSupported, "FieldValues": NVMLError_NotSupported}
    gpu = NvmlCard(0)
    states = [gpu.state() for _ in range(3)]
    assert [state.power_w for state in states] == [None] * 3
    assert states[-1].throttled_ns == {}
    assert states[-1].clock_mhz == 1980
    assert driver.asked["PowerUsage"] == 1


def test_a_passing_fault_is_asked_again(driver):
    gpu = NvmlCard(0)
    driver.answers["PowerUsage"] = NVMLError_GpuIsLost
    assert gpu.state().power_w is None
    driver.answers["PowerUsage"] = 1000
    assert gpu.state().power_w == 1.0


def test_the_older_name_of_event_reasons(driver):
    del driver.answers["CurrentClocksEventReasons"]
    driver.answers["CurrentClocksThrottleReasons"] = 0x8
    assert NvmlCard(0).state().throttle == ("hw_slowdown",)


def test_a_slow_query_is_answered_from_memory(driver):
    driver.answers["PowerUsage"] = lambda handle: time.sleep(0.001) or 1000
    gpu = NvmlCard(0)
    assert [gpu.state().power_w for _ in range(3)] == [1.0] * 3
    assert driver.asked["PowerUsage"] == 1


@pytest.fixture
def stranger():
    """A process that is not ours: `own_pids` below names another of our children as all that is."""
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def own_child():
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def test_other_processes(driver, stranger, own_child):
    driver.answers["ComputeRunningProcesses"] = [SimpleNamespace(pid=pid) for pid in (own_child, stranger)]
    driver.answers["ProcessUtilization"] = [
        SimpleNamespace(pid=stranger, timeStamp=2, smUtil=40),
        SimpleNamespace(pid=stranger, timeStamp=1, smUtil=90),
        SimpleNamespace(pid=own_child, timeStamp=2, smUtil=60),
    ]
    state = NvmlCard(0, own_pids=[own_child]).state()
    assert (state.others, state.others_share) == (1, 0.4)
    # Both descend from this process.
    assert NvmlCard(0, own_pids=[os.getpid()]).state().others == 0
    driver.answers["ProcessUtilization"] = NVMLError_NotFound
    assert NvmlCard(0, own_pids=[own_child]).state().others_share == 0.0
    driver.answers["ProcessUtilization"] = NVMLError_NotSupported
    state = NvmlCard(0, own_pids=[own_child]).state()
    assert (state.others, state.others_share) == (1, None)


@pytest.mark.parametrize("shown", [[], [4_000_001, 4_000_002]])
def test_a_container_hides_processes(driver, shown):
    driver.answers["ComputeRunningProcesses"] = [SimpleNamespace(pid=pid) for pid in shown]
    state = NvmlCard(0).state()
    assert (state.others, state.others_share) == (None, None)


def gpu_state(**changes):
    return State(kind="cuda", **({"at_s": 0.0, "throttle": ()} | changes))


@pytest.mark.parametrize(
    "before, after, word",
    [
        ({}, {"at_s": 1.0}, ""),
        ({"throttle": ("thermal",)}, {}, "throttled"),
        ({}, {"throttle": ("power_brake",)}, "throttled"),
        # What dense matrix products do on any large card.
        ({"throttle": ("power_cap",)}, {"throttle": ("power_cap",)}, ""),
        ({"throttled_ns": {"thermal": 5}}, {"at_s": 1.0, "throttled_ns": {"thermal": 50_000_005}}, "throttled"),
        ({"throttled_ns": {"thermal": 5}}, {"at_s": 1.0, "throttled_ns": {"thermal": 1005}}, ""),
        ({}, {"at_s": 1.0, "throttled_ns": {"thermal": 50_000_005}}, ""),
        ({"throttled_ns": {"power_cap": 5}}, {"at_s": 1.0, "throttled_ns": {"power_cap": 900_000_000}}, ""),
        ({}, {"others": 1, "others_share": 0.4}, "disturbed"),
        ({}, {"others": 1, "others_share": 0.0}, ""),
        ({}, {"others": 1, "others_share": None}, ""),
        ({"throttle": None}, {"throttle": None}, ""),
        ({"throttle_events": 3}, {"throttle_events": 4}, "throttled"),
        ({"throttle_events": None}, {"throttle_events": 4}, ""),
    ],
)
def test_unusable(before, after, word):
    assert unusable(gpu_state(**before), gpu_state(**after)) == word


def test_idle_cores_are_there_for_others():
    before = State(kind="cpu", at_s=0.0)
    assert unusable(before, State(kind="cpu", at_s=1.0, others_share=0.2)) == ""
    assert unusable(before, State(kind="cpu", at_s=1.0, others_share=0.5)) == "disturbed"


class Scripted:
    def __init__(self, *states):
        self._states = list(states)

    def state(self):
        return self._states.pop(0)


def test_a_watch_sums_up():
    watch = Watch(
        Scripted(
            gpu_state(at_s=1.0, clock_mhz=1980, power_w=300.0, temperature_c=50),
            gpu_state(at_s=2.0, clock_mhz=1700, power_w=690.0, temperature_c=81, throttle=("power_cap", "thermal")),
            gpu_state(at_s=3.0, clock_mhz=1900, power_w=500.0, temperature_c=70, others=2, others_share=0.5),
        )
    )
    assert watch.summary() == {"looks": 0}
    with watch:
        assert watch.look() == "throttled"
    summary = watch.summary()
    assert summary["looks"] == 3
    assert summary["seconds"] == 2.0
    assert summary["ranges"]["clock_mhz"] == [1700, 1980]
    assert summary["ranges"]["power_w"] == [300.0, 690.0]
    assert summary["ranges"]["temperature_c"] == [50, 81]
    assert summary["ranges"]["others"] == [2, 2]
    assert summary["throttle"] == {"power_cap": 1, "thermal": 1}
    # The thermal look spoils both intervals it ends.
    assert summary["unusable"] == {"throttled": 2}
    assert summary["unknown"] == ["memory_clock_mhz", "pstate"]
    assert summary["first"]["clock_mhz"] == 1980
    assert len(msgspec.json.encode(summary)) < 2000


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A processor made of files, with two cores that this process may use."""
    monkeypatch.setattr(card, "PROC", tmp_path / "proc")
    monkeypatch.setattr(card, "SYS_CPU", tmp_path / "cpu")
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


def test_this_machine_can_be_looked_at():
    watch = Watch(HostCard())
    with watch:
        pass
    assert watch.summary()["looks"] == 2
