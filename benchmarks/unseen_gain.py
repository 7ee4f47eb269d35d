"""What short calls may have gained unseen by being computed together, over the records of finished runs.

    python benchmarks/unseen_gain.py [RESULTS]          all records below a folder (results)

A line for each length of the candidate's call, up to so many microseconds: how many passed records there are with gated
bursts of several calls, and the median, the upper quartile and the upper tenth of what divides the lower end of their
intervals (`bursts.unseen_gain`).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.timing.bursts import unseen_gain

UP_TO_US = (5, 10, 30, 100, math.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=Path("results"))
    gains: dict[float, list[float]] = {most: [] for most in UP_TO_US}
    for times in timed(parser.parse_args().results):
        call_us = statistics.median(times["candidate_us"])
        gain = unseen_gain(
            times["candidate_single_us"],
            times["candidate_us"],
            baseline_single_us=times["baseline_single_us"],
            baseline_burst_us=times["baseline_us"],
        )
        gains[next(most for most in UP_TO_US if call_us < most)].append(gain)
    for most, found in gains.items():
        if len(found) > 1:
            half, quarter, tenth = (statistics.quantiles(found, n=20)[place] for place in (9, 14, 17))
            print(f"up to {most:g} us: {len(found)} records, {half:.2f} {quarter:.2f} {tenth:.2f}")


def timed(results: Path) -> Iterator[dict[str, Any]]:
    """The times of each such record."""
    for path in sorted(results.rglob("records.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            times = record.get("timing") or {}
            several = times.get("clock") == "device" and times.get("calls_per_burst", 1) > 1
            if record["status"] != "passed" or not several or not times.get("candidate_single_us"):
                continue
            if min(times["candidate_us"] + times["baseline_us"]) > 0:
                yield times


if __name__ == "__main__":
    main()
