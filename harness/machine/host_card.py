"""The processor as /proc and /sys show it. No torch."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from pathlib import Path

from harness.machine import procfs
from harness.machine.card import REFRESH_S, State

SYS_CPU = Path("/sys/devices/system/cpu")
# Cores whose clocks and counters are read; all of a large machine's would take milliseconds.
SAMPLED_CORES = 4


class HostCard:
    """The processor, as far as this process may use it. `own_pids` are those whose use of it is ours, as is that of
    their descendants."""

    def __init__(self, own_pids: Collection[int] = ()) -> None:
        self._own = frozenset(own_pids) or frozenset({os.getpid()})
        self._cores = sorted(os.sched_getaffinity(0))
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._then: tuple[float, float, dict[int, float]] | None = None
        self._share: float | None = None
        self._virtual = "hypervisor" in procfs.read(procfs.PROC / "cpuinfo")

    def state(self) -> State:
        """Raises nothing. `others_share` is that of the last quarter second or more, None in the first."""
        events = [
            int(text)
            for core in self._cores[:SAMPLED_CORES]
            for name in ("core_throttle_count", "package_throttle_count")
            if (text := procfs.read(SYS_CPU / f"cpu{core}" / "thermal_throttle" / name).strip()).isdigit()
        ]
        load = procfs.read(procfs.PROC / "loadavg").split()
        return State(
            kind="cpu",
            at_s=time.monotonic(),
            clock_mhz=self._clock_mhz(),
            throttle_events=sum(events) if events else None,
            others_share=self._others_share(),
            load_1min=float(load[0]) if load else None,
        )

    def _clock_mhz(self) -> int | None:
        texts = [
            procfs.read(SYS_CPU / f"cpu{core}/cpufreq/scaling_cur_freq").strip() for core in self._cores[:SAMPLED_CORES]
        ]
        kilohertz = [int(text) for text in texts if text.isdigit()]
        if kilohertz:
            return max(kilohertz) // 1000
        # What a virtual machine's cpuinfo shows is the nominal clock, whatever the processor does.
        if self._virtual:
            return None
        found = re.findall(r"^cpu MHz\s*: ([\d.]+)", procfs.read(procfs.PROC / "cpuinfo"), re.MULTILINE)
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
            # Process by process: where one ends that nobody waits for, what it ever used is gone from the sum, and as
            # much of another's use would pass for other programs'. Who is waited for counts once more.
            used = sum(max(0.0, total - self._then[2].get(pid, 0.0)) for pid, total in own.items())
            others = busy - self._then[1] - used
            self._share = round(min(1.0, max(0.0, others / elapsed)), 3)
        self._then = (now, busy, own)
        return self._share

    def _busy_s(self) -> float | None:
        wanted = {f"cpu{core}" for core in self._cores}
        ticks = 0
        for line in procfs.read(procfs.PROC / "stat").splitlines():
            name, *counts = line.split()
            if name in wanted:
                # user, nice, system, irq, softirq and steal; 3 and 4 are idle and waiting for disks.
                ticks += sum(int(counts[place]) for place in (0, 1, 2, 5, 6, 7))
        return ticks * self._tick_s if ticks else None

    def _own_s(self) -> dict[int, float]:
        """Processor time of each of our processes and of the children that it has waited for."""
        found: dict[int, float] = {}
        waiting, seen = list(self._own), set[int]()
        while waiting:
            pid = waiting.pop()
            if pid in seen:
                continue
            seen.add(pid)
            found[pid] = sum(int(count) for count in procfs.stat(pid)[11:15]) * self._tick_s
            waiting += procfs.children(pid)
        return found
