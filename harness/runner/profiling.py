"""In the runner: PyTorch's profiler around one call, and what it saw as plain figures.

`torch.autograd.profiler` and not `torch.profiler`, which wraps it and imports much more of torch on its first use. On a
card it loads CUPTI, which stays in the process: nothing is timed after a profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.autograd import profiler
from torch.autograd.profiler import record_function
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, supported_activities

from harness.errors import door
from harness.integrity.provenance import LONGEST_TOLD, MOST_LAUNCHED, Launched, Profile

FORWARD = "assay: forward"
# The copy by which a burst's end is told (cuda_gate.mark_done), behind all that a call enqueues.
MARK = "Memcpy DtoD (Device -> Device)"
CUDA_CALL = re.compile(r"cu(?:da)?[A-Z]")
# Name (nothing for an operator on the CPU), operator around it (nothing for none), microseconds.
Seen = tuple[str, str, float]


class Profiler:
    """Watches from its making to `stop`. Never raises: what goes wrong is told in place of a profile."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._fault = ""
        # Or it writes its start and end into the candidate's log. Read when a process starts its first profile.
        os.environ["KINETO_LOG_LEVEL"] = "99"
        try:
            if self._cuda and ProfilerActivity.CUDA not in supported_activities():
                self._fault = "this build of PyTorch cannot profile CUDA: it has no CUPTI"
                return
            # The first profile of a process takes its time, and misses what is launched while CUPTI gets ready.
            with self._profile(), record_function(FORWARD):
                torch.empty(1, device=device).zero_()
            self._running = self._profile()
            self._running.__enter__()
        except Exception as error:
            self._fault = f"the profiler did not start: {error}"[:LONGEST_TOLD]

    @door
    def forward(self, function: Callable[..., Any], inputs: Iterable[Any]) -> Any:
        """`function(*inputs)`, marked so that what else the runner does is told apart from it."""
        with record_function(FORWARD):
            return function(*inputs)

    def stop(self) -> Profile:
        """What ran; waits for the device."""
        if self._fault:
            return Profile(fault=self._fault)
        try:
            self._running.__exit__(None, None, None)
            results = self._running.kineto_results
            if self._cuda and results is not None:
                seen, wall_us = _on_device(results.events())
            else:
                seen, wall_us = _on_host(self._running.function_events)
        except Exception as error:
            return Profile(fault=f"the profiler failed: {error}"[:LONGEST_TOLD])
        launched = _summed(seen)
        if self._cuda and not launched:
            return Profile(fault="the profiler saw nothing run on the device; CUPTI may not work here")
        if len(launched) > MOST_LAUNCHED:
            return Profile(fault=f"one call ran {len(launched)} different kernels; {MOST_LAUNCHED} can be told")
        return Profile(launched=launched, wall_us=wall_us)

    def _profile(self) -> profiler.profile:
        return profiler.profile(use_cpu=True, use_device="cuda" if self._cuda else None, use_kineto=True)


def _on_device(events: Iterable[Any]) -> tuple[list[Seen], float]:
    """The kernels and transfers of the forward call, and its time on the host in microseconds."""
    events = list(events)
    # Calls of CUDA's own interface are numbered for themselves, and so may bear an operator's number.
    host = [event for event in events if not _on_a_card(event) and not CUDA_CALL.match(event.name())]
    operators = {event.correlation_id(): event for event in host if not event.linked_correlation_id()}
    spans = [(event.start_ns(), event.end_ns()) for event in host if event.name() == FORWARD]
    on_card = [e for e in events if _on_a_card(e) and not e.is_user_annotation() and e.name() != FORWARD]
    on_card.sort(key=lambda event: event.start_ns())
    if on_card and on_card[-1].name() == MARK and not on_card[-1].linked_correlation_id():
        del on_card[-1]
    seen = []
    for event in on_card:
        # Linked to what launched it if that was an operator of PyTorch's; the candidate's own code launches unseen.
        launcher = operators.get(event.linked_correlation_id()) if event.linked_correlation_id() else None
        # An operator outside is the runner's own, handing over an output.
        if launcher is None or any(start <= launcher.start_ns() <= end for start, end in spans):
            seen.append((event.name(), launcher.name() if launcher else "", event.duration_ns() / 1e3))
    return seen, sum(end - start for start, end in spans) / 1e3


def _on_a_card(event: Any) -> bool:
    return bool(event.device_type() != DeviceType.CPU)


def _on_host(events: Iterable[FunctionEvent]) -> tuple[list[Seen], float]:
    """The operators below the forward call, each without those that it calls, and that call's microseconds."""
    seen = [("", event.name, event.self_cpu_time_total) for event in events if _is_below_marker(event)]
    return seen, sum(event.time_range.elapsed_us() for event in events if event.name == FORWARD)


def _is_below_marker(event: Any) -> bool:
    above = event.cpu_parent
    while above is not None and above.name != FORWARD:
        above = above.cpu_parent
    return above is not None


def _summed(seen: list[Seen]) -> list[Launched]:
    """By name and operator, most time first."""
    calls: dict[tuple[str, str], list[float]] = {}
    for name, op, us in seen:
        calls.setdefault((name[:LONGEST_TOLD], op[:LONGEST_TOLD]), []).append(us)
    launched = [
        Launched(name=name, op=op, calls=len(times), device_us=max(sum(times), 0.0))
        for (name, op), times in calls.items()
    ]
    return sorted(launched, key=lambda one: -one.device_us)
