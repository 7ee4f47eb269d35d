"""The speed of light: how fast this card could do the work at all (roofline; Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Ceilings are measured with one kernel each, and another may do somewhat better: a reading kernel moves more bytes a
# second than a copying one. Faster than the floor by less than this proves nothing.
MARGIN = 0.15


@dataclass(frozen=True, slots=True)
class Work:
    """What one call must do: floating-point operations by dtype class (`float16`, `tf32`, ...) and bytes.

    `streamed_bytes` are inputs read and outputs written afresh by each call; `resident_bytes` are parameters, which
    the last-level cache may keep from one call to the next.
    """

    flops: Mapping[str, float]
    streamed_bytes: float
    resident_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What this card was seen to do: bytes a second (the best of copy, read and fill; read and written bytes both
    counted) and matmul FLOP a second by dtype class."""

    bytes_per_s: float
    flops_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time of one call in microseconds.

    `us` is the roofline: the larger of the time for all bytes and that for the slowest dtype class (classes may
    overlap, so they are not added). `bound` names it: `memory`, `compute:<class>` or `none`. A program may undercut it
    honestly, by an algorithm of fewer FLOPs, a faster dtype split (3xTF32), or weights kept in cache. `streamed_us`
    (streamed bytes alone) it cannot, unless it leaves inputs unread that the answer does not need.
    """

    us: float
    bound: str
    streamed_us: float


def floor(work: Work, ceilings: Ceilings) -> Floor:
    """The floor of `work` under `ceilings`. A dtype class without a ceiling does not bound.

    Raises ValueError for a ceiling that is not positive.
    """
    if ceilings.bytes_per_s <= 0 or any(rate <= 0 for rate in ceilings.flops_per_s.values()):
        raise ValueError("a ceiling must be positive")
    streamed_us = work.streamed_bytes / ceilings.bytes_per_s * 1e6
    memory_us = streamed_us + work.resident_bytes / ceilings.bytes_per_s * 1e6
    compute = {
        kind: count / ceilings.flops_per_s[kind] * 1e6
        for kind, count in work.flops.items()
        if kind in ceilings.flops_per_s
    }
    slowest = max(compute, key=lambda kind: compute[kind], default="")
    compute_us = compute.get(slowest, 0.0)
    if memory_us >= compute_us:
        return Floor(memory_us, "memory" if memory_us > 0 else "none", streamed_us)
    return Floor(compute_us, f"compute:{slowest}", streamed_us)


def sol_fraction(measured_us: float, floor_us: float) -> float | None:
    """Share of the speed of light reached: floor over measured time. None where there is no floor or no time."""
    return floor_us / measured_us if floor_us > 0 and measured_us > 0 else None


def faster_than_light(measured_us: float, error_us: float, floor_us: float, margin: float = MARGIN) -> bool:
    """Whether a time lies below the floor by more than its own error and the ceilings' margin (relative) allow.

    Pass `Floor.streamed_us` where the answer rejects, `Floor.us` where it warns.
    """
    return measured_us + error_us < floor_us * (1 - margin)
