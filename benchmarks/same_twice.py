"""Which intervals of published runs contain 1 where a candidate is the reference itself: by today's allowance for what
two processes differ by on a GPU, and by one that does not count kernels. Nothing is run.

    python benchmarks/same_twice.py [RUN...]        by default those of results/ that have such candidates
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.errors import UsageError
from harness.records import Record
from harness.store import run_directory
from harness.timing import burst_clock
from harness.timing.statistics import median

ROOT = Path(__file__).resolve().parents[1]
RUNS = ("precision-h200", "kernelbench-h200/small", "kernelbench-h200/rows")
# In records of these runs the copy that tells the end of a burst is among the candidate's own.
NO_KERNEL = "Memcpy DtoD (Device -> Device)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a run directory")
    runs = parser.parse_args().runs or [ROOT / "results" / name for name in RUNS]
    try:
        same = [record for run in runs for record in run_directory.read(run)[1] if is_the_reference(record)]
    except UsageError as error:
        parser.error(str(error))
    for record in same:
        kernels = kernels_of(record)
        contained = ["1 inside" if contains_one(record, count) else "1 outside" for count in (1, kernels)]
        print(f"{record.problem[:50]:50} {kernels:3} kernels {record.speedup:.4f}x  {contained[0]}, {contained[1]}")
    once, each = (sum(contains_one(one, count(one)) for one in same) for count in (lambda _: 1, kernels_of))
    print(f"same={len(same)} with_1_once_a_call={once} with_1_each_kernel={each}")


def is_the_reference(record: Record) -> bool:
    named = record.candidate == "reference" or record.candidate.endswith("_aa")
    return named and record.timing is not None and record.timing.clock == "device"


def kernels_of(record: Record) -> int:
    """How many kernels a call ran, by its profile."""
    uses = record.provenance.kernels if record.provenance else []
    return max(1, sum(use.calls for use in uses if use.name != NO_KERNEL))


def contains_one(record: Record, kernels: int) -> bool:
    """Whether the interval of the pairs, widened for so many kernels a call on both sides, contains 1."""
    timing = record.timing
    assert timing is not None
    own = math.log(record.speedup_hi / record.speedup_lo) / 2 - timing.systematic
    a_call_us = min(median(timing.candidate_us), median(timing.baseline_us))
    apart_us = math.hypot(burst_clock.PROCESS_US * kernels * timing.calls_per_burst, burst_clock.PROCESS_BURST_US)
    allowed = burst_clock.PROCESS_SHARE + apart_us / (timing.calls_per_burst * a_call_us)
    return abs(math.log(record.speedup)) <= own + allowed


if __name__ == "__main__":
    main()
