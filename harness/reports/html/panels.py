"""What a report shows of one candidate beside its row: figures, diagnostics, kernels, place of the error. No markup."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.catalog.facts import Diagnostic
from harness.records import Record, Status
from harness.reports import text


@dataclass(frozen=True)
class Place:
    """Where in an output the wrong elements are. `box` has first and last of each dimension; `shape` may be empty."""

    path: str
    share: float | None
    box: list[list[int]]
    shape: list[int]
    first: str
    worst: str
    worst_index: list[int]


def figures(record: Record) -> dict[str, str]:
    """Label to value; what the record does not have, or its verdict says in words, is not there."""
    timing = record.timing
    found = {}
    if record.error_ratio is not None:
        found["error"] = f"{text.number(record.error_ratio) or 'infinitely many'} times the reference's own"
    if record.speedup is None and record.candidate_ms is not None:
        times = text.duration(record.candidate_ms), text.duration(record.baseline_ms)
        found["time of a call"] = f"{times[0]}, baseline {times[1]}" if times[1] else times[0]
    if record.sol_fraction is not None and timing and timing.floor_us:
        bound = timing.floor_bound.replace("memory", "memory traffic").replace("compute:", "arithmetic in ")
        found["speed of light"] = (
            f"{record.sol_fraction:.0%} of it; the least time is {_us(timing.floor_us)}, by {bound}"
        )
    if timing:
        calls = f"{timing.calls_per_burst} {'call' if timing.calls_per_burst == 1 else 'calls'}"
        found["samples"] = f"{len(timing.candidate_us)} pairs of bursts, {calls} each, clock: {timing.clock}"
        if timing.candidate_latency_us and timing.baseline_latency_us:
            found["a caller waits"] = f"{_us(timing.candidate_latency_us)} (baseline {_us(timing.baseline_latency_us)})"
        found["device meanwhile"] = _card(timing.card)
    costs = {"build": record.compile_s, "load, checks and timing": record.wall_s}
    found["cost"] = ", ".join(f"{label} {seconds:.1f} s" for label, seconds in costs.items() if seconds is not None)
    return {label: value for label, value in found.items() if value}


def _us(value: float) -> str:
    return text.duration(value / 1000)


def _card(card: Mapping[str, Any]) -> str:
    """Clock, power, temperature and what held it back, as far as they were read."""
    ranges = card.get("ranges")
    units = {"clock_mhz": "MHz", "power_w": "W", "temperature_c": "°C"}
    said = []
    for key, unit in units.items():
        ends = ranges.get(key) if isinstance(ranges, Mapping) else None
        if isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends):
            low, high = (f"{end:.0f}" for end in ends)
            said.append(f"{low} {unit}" if low == high else f"{low} to {high} {unit}")
    held = card.get("throttle")
    if isinstance(held, Mapping) and held:
        said.append(f"held back by {', '.join(str(cause).replace('_', ' ') for cause in held)}")
    return ", ".join(said)


def diagnostics(record: Record) -> list[Diagnostic]:
    """What the compiler said."""
    try:
        return msgspec.convert(record.evidence.get("errors", []), list[Diagnostic])
    except msgspec.ValidationError:
        return []


def offending(record: Record) -> list[int]:
    """Lines of the candidate's file that the verdict speaks of."""
    if record.status in (Status.PASSED, Status.INVALID_REFERENCE):
        return []
    found = [record.evidence.get("line"), *(error.line for error in diagnostics(record))]
    return sorted({line for line in found if isinstance(line, int) and line > 0})


def log_tail(record: Record) -> str:
    """The end of what its process or its compiler printed, as far as the record has it."""
    found = record.evidence.get("log_tail") or record.evidence.get("output_tail")
    return found.strip() if isinstance(found, str) else ""


def place(record: Record) -> Place | None:
    """None if the record does not say where."""
    evidence = record.evidence
    box = _pairs(evidence.get("wrong_within"))
    if not box:
        return None
    shape = _integers(evidence.get("shape"))
    fits = len(shape) == len(box) and all(0 <= a <= b < size for (a, b), size in zip(box, shape, strict=True))
    worst, share = evidence.get("worst"), evidence.get("share_wrong")
    index = _integers(worst.get("index")) if isinstance(worst, Mapping) else []
    return Place(
        path=str(evidence.get("path", "output")),
        share=share if isinstance(share, float) and math.isfinite(share) else None,
        box=box,
        shape=shape if fits else [],
        first=_element(evidence.get("first")),
        worst=_element(worst),
        worst_index=index if len(index) == len(box) else [],
    )


def _element(found: object) -> str:
    """`[0, 3]: 0.5 in place of 0.25`; empty if the evidence is of another shape."""
    if not isinstance(found, Mapping) or not {"index", "got", "expected"} <= found.keys():
        return ""
    got, expected = (f"{one:.6g}" if isinstance(one, float) else str(one) for one in (found["got"], found["expected"]))
    return f"{found['index']}: {got} in place of {expected}"


def _pairs(found: object) -> list[list[int]]:
    pairs = [_integers(pair) for pair in found] if isinstance(found, list) else []
    return pairs if all(len(pair) == 2 for pair in pairs) else []


def _integers(found: object) -> list[int]:
    return found if isinstance(found, list) and all(isinstance(one, int) for one in found) else []
