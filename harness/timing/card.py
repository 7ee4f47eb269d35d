"""The state of the device around measurements: clocks, power, heat, throttling, and who else is using it.

Sources: NVML on a GPU, /proc and /sys on the CPU. No torch. Whatever cannot be read here is None in the state, and
costs nothing from then on; a measurement never fails because its circumstances are unknown.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

# A query that takes longer than this is answered from memory for a while: a look must stay well under 1 ms.
SLOW_QUERY_S = 0.0002
REFRESH_S = 0.25

# What makes a reading unusable. A power cap is not among them: dense matrix products run into it on every large card,
# so it belongs to the program that draws the power, and dropping its readings would leave none.
SPOILING = frozenset({"thermal", "hw_slowdown", "power_brake", "sync_boost", "reliability"})
# Share of the time between two looks for which a counted slowdown must have lasted.
SLOWED_SHARE = 0.01
# Share of the device that others may use: a GPU is time-sliced, so any is felt; cores left idle are not.
OTHERS_ON_A_GPU = 0.05
OTHERS_ON_A_CPU = 0.25

# NVML's clock-event bits. Idle (1), application clocks (2) and display clocks (256) are settings, not throttling.
EVENT_WORDS = {
    0x004: "power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "thermal",
    0x040: "thermal",
    0x080: "power_brake",
    0x200: "board_limit",
    0x400: "reliability",
}
# NVML's fields that count nanoseconds of slowdown since the driver was loaded: they see what lies between two looks.
COUNTER_WORDS = {74: "power_cap", 75: "thermal", 76: "sync_boost", 269: "thermal", 270: "thermal", 271: "power_brake"}

PROC = Path("/proc")
SYS_CPU = Path("/sys/devices/system/cpu")
# Cores whose clocks and counters are read; all of a large machine's would take milliseconds.
SAMPLED_CORES = 4


# What a summary gives the range of, and what can be known of each kind of device.
RANGES = ("clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "pstate", "others", "others_share", "load_1min")
KNOWABLE = {
    "cuda": (*RANGES[:-1], "throttle"),
    "cpu": ("clock_mhz", "throttle_events", "others_share", "load_1min"),
}


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look. None is "cannot be read here".

    `at_s` is on the monotonic clock. `clock_mhz` is that of the multiprocessors, or of the fastest core looked at;
    `power_w` is the driver's average, of up to a second. `throttle` names the reasons in force now, `throttled_ns` and
    `throttle_events` count them up since boot. `others` is the number of other processes that hold the GPU,
    `others_share` the part (0 to 1) of the device's time that they used of late. `load_1min` includes our own.
    """

    kind: str
    at_s: float
    clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    pstate: int | None = None
    throttle: tuple[str, ...] | None = None
    throttled_ns: dict[str, int] = {}
    throttle_events: int | None = None
    others: int | None = None
    others_share: float | None = None
    load_1min: float | None = None


class Card(Protocol):
    """A device that can be looked at. `state` never raises."""

    def state(self) -> State: ...


def unusable(before: State, after: State) -> str:
    """Why what was measured between two looks must not count: `throttled`, `disturbed`, or empty."""
    words = set(before.throttle or ()) | set(after.throttle or ())
    allowed_ns = SLOWED_SHARE * max(0.0, after.at_s - before.at_s) * 1e9
    for word, count in after.throttled_ns.items():
        if count - before.throttled_ns.get(word, count) > allowed_ns:
            words.add(word)
    events = None not in (before.throttle_events, after.throttle_events)
    if words & SPOILING or (events and (after.throttle_events or 0) > (before.throttle_events or 0)):
        return "throttled"
    limit = OTHERS_ON_A_GPU if after.kind == "cuda" else OTHERS_ON_A_CPU
    return "disturbed" if (after.others_share or 0.0) > limit else ""


class Watch:
    """Looks at a card again and again, and keeps what a record needs: extremes and counts, not every state."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._first: State | None = None
        self._last: State | None = None
        self._looks = 0
        self._ranges: dict[str, tuple[float, float]] = {}
        self._throttle: Counter[str] = Counter()
        self._unusable: Counter[str] = Counter()

    def look(self) -> str:
        """Look once; the answer says (see `unusable`) whether what happened since the last look may count."""
        state = self._card.state()
        word = unusable(self._last, state) if self._last else ""
        self._first = self._first or state
        self._last = state
        self._looks += 1
        self._throttle.update(state.throttle or ())
        self._unusable.update([word] if word else [])
        for name in RANGES:
            value = getattr(state, name)
            if value is not None:
                low, high = self._ranges.get(name, (value, value))
                self._ranges[name] = (min(low, value), max(high, value))
        return word

    def __enter__(self) -> Watch:
        self.look()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()

    def summary(self) -> dict[str, Any]:
        """What was seen, as JSON of bounded size: `first` and `last` state, [min, max] of each quantity that could
        be read, how many looks found each throttle reason, and how many intervals were unusable, by word. `unknown`
        names what could not be read."""
        if self._first is None or self._last is None:
            return {"looks": 0}
        return {
            "looks": self._looks,
            "seconds": round(self._last.at_s - self._first.at_s, 3),
            "first": _without_time(self._first),
            "last": _without_time(self._last),
            "ranges": {name: list(ends) for name, ends in self._ranges.items()},
            "throttle": dict(self._throttle),
            "unusable": dict(self._unusable),
            "unknown": [name for name in KNOWABLE[self._last.kind] if getattr(self._last, name) is None],
        }


class NvmlCard:
    """A GPU, told by its UUID (as torch or NVML writes it) or by its index in NVML's order, which is not torch's.

    `own_pids` are processes whose use of the card is ours, as is that of all their descendants; by default this one.
    One of them must use the card already, or others cannot be told (see `_users`). Where no driver or no such card is
    found, `fault` says so and every state is empty.
    """

    def __init__(self, which: str | int, own_pids: Collection[int] = ()) -> None:
        self.fault = ""
        self._own = frozenset(own_pids) or frozenset({os.getpid()})
        self._handle: Any = None
        self._queries: dict[str, _Query] = {}
        self._asked_us = 0
        try:
            import pynvml
        except ImportError:
            self.fault = "the package nvidia-ml-py is missing"
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = _handle(pynvml, which)
        except pynvml.NVMLError as error:
            self.fault = f"NVML shows no such card: {error}"
            return
        final = ("NotSupported", "NoPermission", "FunctionNotFound", "InvalidArgument")
        faults = (getattr(pynvml, f"NVMLError_{name}", None) for name in final)
        forever = tuple(fault for fault in faults if fault is not None)
        for name, ask in self._questions().items():
            self._queries[name] = _Query(ask, pynvml.NVMLError, forever)

    def state(self) -> State:
        """Raises nothing. Values that are slow to read are up to a quarter of a second old."""
        known = {name: query.answer() for name, query in self._queries.items()}
        others, others_share = known.pop("users", None) or (None, None)
        return State(
            kind="cuda",
            at_s=time.monotonic(),
            others=others,
            others_share=others_share,
            throttled_ns=known.pop("throttled_ns", None) or {},
            **known,
        )

    def _questions(self) -> dict[str, Callable[[], Any]]:
        """Throttling first: it is over soonest."""
        nvml, handle = self._nvml, self._handle
        return {
            "throttle": self._throttle,
            "clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            "throttled_ns": self._throttled_ns,
            "memory_clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            "temperature_c": self._temperature,
            "pstate": lambda: int(nvml.nvmlDeviceGetPerformanceState(handle)),
            "users": self._users,
        }

    def _throttle(self) -> tuple[str, ...]:
        try:
            bits = self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle)
        except (AttributeError, self._nvml.NVMLError):
            # Its name before driver 535.
            bits = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        return tuple(sorted({word for bit, word in EVENT_WORDS.items() if bits & bit}))

    def _throttled_ns(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for value in self._nvml.nvmlDeviceGetFieldValues(self._handle, list(COUNTER_WORDS)):
            word = COUNTER_WORDS.get(value.fieldId)
            if word and value.nvmlReturn == self._nvml.NVML_SUCCESS:
                # Several fields count one word, and may count the same moment: the larger is the lower bound.
                counts[word] = max(counts.get(word, 0), int(value.value.ullVal))
        return counts

    def _temperature(self) -> int:
        nvml = self._nvml
        # NVML 13 announces the end of the first, drivers before 565 lack the second.
        ask = getattr(nvml, "nvmlDeviceGetTemperature", None) or nvml.nvmlDeviceGetTemperatureV
        return int(ask(self._handle, nvml.NVML_TEMPERATURE_GPU))

    def _users(self) -> tuple[int | None, float | None]:
        """Other processes on the card, and their share of its time.

        In a container NVML shows no processes, or numbers of another namespace. Only where it shows one of ours are
        the rest believed; a number that /proc does not know is none of this namespace, or just gone.
        """
        nvml = self._nvml
        pids = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)}
        ours = {pid for pid in pids if is_descendant(pid, self._own)}
        if not ours:
            return None, None
        others = {pid for pid in pids - ours if (PROC / str(pid)).exists()}
        since_us, self._asked_us = self._asked_us, int(time.time() * 1e6)
        if not others:
            return 0, 0.0
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(self._handle, since_us or self._asked_us - 1_000_000)
        except nvml.NVMLError as error:
            # No samples: nobody used it. Anything else: that is unknown.
            return len(others), 0.0 if isinstance(error, nvml.NVMLError_NotFound) else None
        latest = {sample.pid: sample for sample in sorted(samples, key=lambda sample: sample.timeStamp)}
        percent = sum(int(sample.smUtil) for pid, sample in latest.items() if pid in others and sample.smUtil <= 100)
        return len(others), min(1.0, percent / 100)


class HostCard:
    """The processor, as far as this process may use it. `own_pids` are those whose use of it is ours, as is that of
    their descendants."""

    def __init__(self, own_pids: Collection[int] = ()) -> None:
        self._own = frozenset(own_pids) or frozenset({os.getpid()})
        self._cores = sorted(os.sched_getaffinity(0))
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._then: tuple[float, float, float] | None = None
        self._share: float | None = None
        self._virtual = "hypervisor" in _read(PROC / "cpuinfo")

    def state(self) -> State:
        """Raises nothing. `others_share` is that of the last quarter second or more, None in the first."""
        events = [
            int(text)
            for core in self._cores[:SAMPLED_CORES]
            for name in ("core_throttle_count", "package_throttle_count")
            if (text := _read(SYS_CPU / f"cpu{core}" / "thermal_throttle" / name).strip()).isdigit()
        ]
        load = _read(PROC / "loadavg").split()
        return State(
            kind="cpu",
            at_s=time.monotonic(),
            clock_mhz=self._clock_mhz(),
            throttle_events=sum(events) if events else None,
            others_share=self._others_share(),
            load_1min=float(load[0]) if load else None,
        )

    def _clock_mhz(self) -> int | None:
        texts = [_read(SYS_CPU / f"cpu{core}/cpufreq/scaling_cur_freq").strip() for core in self._cores[:SAMPLED_CORES]]
        kilohertz = [int(text) for text in texts if text.isdigit()]
        if kilohertz:
            return max(kilohertz) // 1000
        # What a virtual machine's cpuinfo shows is the nominal clock, whatever the processor does.
        if self._virtual:
            return None
        found = re.findall(r"^cpu MHz\s*: ([\d.]+)", _read(PROC / "cpuinfo"), re.MULTILINE)
        return round(max(map(float, found))) if found else None

    def _others_share(self) -> float | None:
        """Busy time of our cores less our own processes' time. Both are counted in ticks of 10 ms, so a shorter window
        would say nothing."""
        now = time.monotonic()
        if self._then and now - self._then[0] < REFRESH_S:
            return self._share
        busy, own = self._busy_s(), self._own_s()
        if busy is None:
            return None
        if self._then:
            elapsed = (now - self._then[0]) * len(self._cores)
            # Our own falls where a process of ours ends that nobody waits for.
            others = busy - self._then[1] - max(0.0, own - self._then[2])
            self._share = round(min(1.0, max(0.0, others / elapsed)), 3)
        self._then = (now, busy, own)
        return self._share

    def _busy_s(self) -> float | None:
        wanted = {f"cpu{core}" for core in self._cores}
        ticks = 0
        for line in _read(PROC / "stat").splitlines():
            name, *counts = line.split()
            if name in wanted:
                # user, nice, system, irq, softirq and steal; 3 and 4 are idle and waiting for disks.
                ticks += sum(int(counts[place]) for place in (0, 1, 2, 5, 6, 7))
        return ticks * self._tick_s if ticks else None

    def _own_s(self) -> float:
        """Processor time of our processes and of the children that they have waited for."""
        ticks = 0
        waiting, seen = list(self._own), set[int]()
        while waiting:
            pid = waiting.pop()
            if pid in seen:
                continue
            seen.add(pid)
            ticks += sum(int(count) for count in _stat(pid)[11:15])
            for tasks in (PROC / str(pid) / "task").glob("*/children"):
                waiting += [int(child) for child in _read(tasks).split()]
        return ticks * self._tick_s


def is_descendant(pid: int, ancestors: Collection[int]) -> bool:
    """Whether a process is one of `ancestors` or was started by one, as far as /proc tells."""
    for _ in range(64):
        if pid in ancestors:
            return True
        fields = _stat(pid)
        if pid <= 1 or len(fields) < 2:
            return False
        pid = int(fields[1])
    return False


class _Query:
    """One question to NVML: asked no more once it is unsupported, and seldom where the answer takes long."""

    def __init__(self, ask: Callable[[], Any], fault: type[Exception], forever: tuple[type[Exception], ...]) -> None:
        self._ask: Callable[[], Any] | None = ask
        self._fault = fault
        self._forever = forever
        self._known: Any = None
        self._due_s = 0.0

    def answer(self) -> Any:
        """The answer, or None."""
        began = time.monotonic()
        if self._ask is None or began < self._due_s:
            return self._known
        try:
            self._known = self._ask()
        except Exception as error:
            self._known = None
            # What is no NVML error is a library of another version than expected.
            if not isinstance(error, self._fault) or isinstance(error, self._forever):
                self._ask = None
        took_s = time.monotonic() - began
        self._due_s = began + REFRESH_S if took_s > SLOW_QUERY_S else 0.0
        return self._known


def _handle(nvml: Any, which: str | int) -> Any:
    """NVML's handle; raises its error where there is none. torch writes a UUID without the prefix that NVML wants."""
    if isinstance(which, int):
        return nvml.nvmlDeviceGetHandleByIndex(which)
    names: Sequence[str] = (which,) if which.startswith(("GPU-", "MIG-")) else (f"GPU-{which}", f"MIG-{which}", which)
    for name in names[:-1]:
        try:
            return nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError:
            continue
    return nvml.nvmlDeviceGetHandleByUUID(names[-1])


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (its name may hold anything); empty where there is none."""
    return _read(PROC / str(pid) / "stat").rpartition(")")[2].split()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _without_time(state: State) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(state)
    del known["at_s"]
    return known
