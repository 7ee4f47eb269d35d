"""A GPU as NVML shows it. No torch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from harness.machine import procfs
from harness.machine.card import REFRESH_S, State

# A query that takes longer than this is answered from memory for a while: a look must stay well under 1 ms.
SLOW_QUERY_S = 0.0002

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
        ours = {pid for pid in pids if procfs.is_descendant(pid, self._own)}
        if not ours:
            return None, None
        others = {pid for pid in pids - ours if (procfs.PROC / str(pid)).exists()}
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
