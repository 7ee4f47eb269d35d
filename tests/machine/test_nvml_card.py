import os
import subprocess
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from harness.machine.card import State
from harness.machine.nvml_card import NvmlCard


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
