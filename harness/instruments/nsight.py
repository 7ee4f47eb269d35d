"""What Nsight Compute measured of each kernel, from its page `raw` as CSV. No torch.

The page has a row of names, a row of units, and a row for each launch. Names of metrics:
https://docs.nvidia.com/nsight-compute/ProfilingGuide/.
"""

from __future__ import annotations

import csv
import io
import math
from typing import Annotated

import msgspec

LONGEST_NAME = 1000
MOST_FIGURES = 40


class Figure(msgspec.Struct, frozen=True):
    """One figure of a kernel: what people call it, its unit, and the metrics that have it, the first that is there."""

    name: str
    unit: str
    metrics: tuple[str, ...]


FIGURES = (
    Figure("time", "us", ("gpu__time_duration.sum",)),
    Figure("SM throughput", "%", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Figure("memory throughput", "%", ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",)),
    Figure(
        "DRAM throughput",
        "%",
        (
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
    ),
    Figure("DRAM rate", "byte/s", ("dram__bytes.sum.per_second",)),
    Figure("L1 hits", "%", ("l1tex__t_sector_hit_rate.pct",)),
    Figure("L2 hits", "%", ("lts__t_sector_hit_rate.pct",)),
    Figure("occupancy", "%", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    Figure("possible occupancy", "%", ("sm__maximum_warps_per_active_cycle_pct",)),
    Figure(
        "instructions a cycle",
        "",
        ("sm__inst_executed.avg.per_cycle_active", "sm__inst_executed.avg.per_cycle_elapsed"),
    ),
    Figure("registers a thread", "", ("launch__registers_per_thread",)),
    Figure("shared memory a block", "byte", ("launch__shared_mem_per_block",)),
    Figure("waves", "", ("launch__waves_per_multiprocessor",)),
)
NAMES = frozenset(figure.name for figure in FIGURES)
# Of a unit's first part: into microseconds, and into bytes. What is not here is taken as it is.
SCALES = {
    "ns": 1e-3,
    "nsecond": 1e-3,
    "us": 1.0,
    "usecond": 1.0,
    "ms": 1e3,
    "msecond": 1e3,
    "s": 1e6,
    "second": 1e6,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "Tbyte": 1e12,
}


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a kernel and its figures by name (FIGURES), in their units."""

    kernel: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    grid: Annotated[str, msgspec.Meta(max_length=100)] = ""
    block: Annotated[str, msgspec.Meta(max_length=100)] = ""
    figures: Annotated[
        dict[Annotated[str, msgspec.Meta(max_length=100)], Annotated[float, msgspec.Meta(ge=-1e18, le=1e18)]],
        msgspec.Meta(max_length=MOST_FIGURES),
    ] = {}


def parse(output: str) -> list[Launch]:
    """The launches of a page, in their order; empty where `output` holds no such page."""
    lines = output.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    names, *rows = csv.reader(io.StringIO("\n".join(lines[start:])))
    if not rows:
        return []
    unit_of = dict(zip(names, rows.pop(0), strict=False))
    return [_launch(dict(zip(names, row, strict=False)), unit_of) for row in rows if len(row) == len(names)]


def _launch(row: dict[str, str], units: dict[str, str]) -> Launch:
    figures = {}
    for figure in FIGURES:
        metric = next((metric for metric in figure.metrics if _number(row.get(metric, "")) is not None), None)
        value = None if metric is None else _number(row[metric])
        if metric is not None and value is not None:
            figures[figure.name] = value * SCALES.get(units.get(metric, "").partition("/")[0], 1.0)
    name = row.get("Kernel Name", "")[:LONGEST_NAME]
    return Launch(
        kernel=name, grid=row.get("Grid Size", "")[:100], block=row.get("Block Size", "")[:100], figures=figures
    )


def _number(said: str) -> float | None:
    """A figure with or without commas between thousands; None for `n/a` and the like."""
    try:
        value = float(said.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
