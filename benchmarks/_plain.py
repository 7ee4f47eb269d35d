"""Two copies of one model timed in one plain process, in turn: what a comparison could show at best on this machine.

    python benchmarks/_plain.py SOURCE CALLS PAIRS
prints the speedup of one copy over the other and the microseconds of a call.
"""

from __future__ import annotations

import runpy
import sys
import time

import torch

from harness.timing import statistics


def main(source: str, calls: int, pairs: int) -> None:
    models = [runpy.run_path(source)["Model"]() for _ in range(2)]
    draw = runpy.run_path(source)["get_inputs"]
    times_us: list[list[float]] = [[], []]
    with torch.no_grad():
        for pair in range(pairs + 2):
            for side in (0, 1) if pair % 4 in (0, 3) else (1, 0):
                given = [draw() for _ in range(calls)]
                started = time.perf_counter()
                for inputs in given:
                    models[side](*inputs)
                # The first pairs meet cold code.
                if pair >= 2:
                    times_us[side].append((time.perf_counter() - started) * 1e6 / calls)
    print(statistics.speedup(times_us[0], times_us[1]).value, statistics.median(times_us[0]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
