"""The speed of light: how fast this card could do the work at all (roofline; Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Ceilings are measured with one kernel each, and another may do somewhat better: a reading kernel moves more bytes a
# second than a copying one. Faster than the floor by less than this proves nothing.
MARGIN = 0.15

# By dtype class, the others that honest programs compute it in, and how many of their products take the place of one.
# Float32 from halves: high and low parts of both operands without the product of the low ones, three of float16 or
# TF32 (Ootomo and Yokota 2022); bfloat16 needs three parts, and six products. A half in the other one's unit, as where
# a processor has one of them only, or in float32. TF32 keeps as many digits as float16. Tensor cores with float8 run it
# as fast as int8, which libraries serve less well.
ROUTES: Mapping[str, Mapping[str, int]] = {
    "float32": {"tf32": 3, "float16": 3, "bfloat16": 6},
    "tf32": {"float16": 1, "float32": 1},
    "float16": {"bfloat16": 1, "float32": 1},
    "bfloat16": {"float16": 1, "float32": 1},
    "int8": {"float8": 1, "float16": 1, "float32": 1},
    "float8": {"int8": 1, "float16": 1, "bfloat16": 1, "float32": 1},
}


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

    `us` is the roofline: the larger of the time for all bytes and that for the slowest dtype class, each by the
    cheapest of its `ROUTES` (classes may overlap, so they are not added). `bound` names it: `memory`,
    `compute:<class>` or `none`. A program may undercut it honestly, by an algorithm of fewer FLOPs or with weights kept
    in cache. `streamed_us` (streamed bytes alone) it cannot, unless it leaves inputs unread that the answer does not
    need.
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
        kind: count / rate * 1e6 for kind, count in work.flops.items() if (rate := best_rate(kind, ceilings)) > 0
    }
    slowest = max(compute, key=lambda kind: compute[kind], default="")
    compute_us = compute.get(slowest, 0.0)
    if memory_us >= compute_us:
        return Floor(memory_us, "memory" if memory_us > 0 else "none", streamed_us)
    return Floor(compute_us, f"compute:{slowest}", streamed_us)


def best_rate(kind: str, ceilings: Ceilings) -> float:
    """FLOP a second of a dtype class by the cheapest route that keeps its accuracy; 0 where the class has no ceiling.

    A route alone does not bound: what the class's own units can do is not known there.
    """
    rates = ceilings.flops_per_s
    if kind not in rates:
        return 0.0
    return max(rates[kind], *(rates.get(other, 0.0) / times for other, times in ROUTES.get(kind, {}).items()), 0.0)


def sol_fraction(measured_us: float, floor_us: float) -> float | None:
    """Share of the speed of light reached: floor over measured time. None where there is no floor or no time."""
    return floor_us / measured_us if floor_us > 0 and measured_us > 0 else None


def faster_than_light(measured_us: float, error_us: float, floor_us: float, margin: float = MARGIN) -> bool:
    """Whether a time lies below the floor by more than its own error and the ceilings' margin (relative) allow.

    Pass `Floor.streamed_us` where the answer rejects, `Floor.us` where it warns.
    """
    return measured_us + error_us < floor_us * (1 - margin)
