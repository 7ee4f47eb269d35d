"""What the oracle costs: its full and fast checks in units of the reference's own call, on one problem.

    python benchmarks/oracle_cost.py [PROBLEM] [--variant NAME] [--device auto] [--repeats 5]

PROBLEM is a file or folder as `run_eval.py audit` takes it; attention/sdpa if none is given. Times are medians of warm
repeats, by events on a card, by the host's clock on the CPU. The last line is the whole of a first check, expectation
and comparison, over one reference call: the goal is below ten for a problem whose float64 copies fit the card.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import environment
from harness.catalog import problems as catalog
from harness.errors import UsageError
from harness.judge.reference import Reference
from harness.oracle import formats
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle
from harness.wire.messages import CandidateSource

DEFAULT = str(Path(__file__).resolve().parents[1] / "problems/attention/sdpa.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", default=DEFAULT)
    parser.add_argument("--variant", default="default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    try:
        device = environment.choose_devices(arguments.device)[0]
        problem = catalog.discover([arguments.problem])[0]
        overrides = catalog.overrides(problem, arguments.variant)
    except UsageError as error:
        sys.exit(str(error))
    if overrides is None:
        sys.exit(f"{problem.id} has no variant '{arguments.variant}'")
    source = CandidateSource(path=str(problem.path.resolve()), entries=("Model",), overrides=overrides)
    reference = Reference(source, problem.precision, torch.device(device.spec), seed=1)
    print(f"{problem.id} {arguments.variant} {problem.precision} on {device.name}, torch {torch.__version__}")
    report(reference, arguments.repeats)


def report(reference: Reference, repeats: int) -> None:
    """Print what each part takes, in milliseconds and in calls of the reference."""
    oracle, draw = Oracle(reference.model), reference.draw()
    inputs = list(draw.inputs)

    def timed(act: Callable[[], Any]) -> float:
        act()
        return statistics.median(elapsed_ms(act, reference.device) for _ in range(repeats))

    with torch.no_grad():
        call_ms = timed(lambda: reference.model(*inputs))
    expected = oracle.expect(inputs, draw.seed)
    glance = oracle.glance(inputs, draw.seed)
    own = expected.native
    parts = {
        "reference call": call_ms,
        **{f"  {name}": timed(run) for name, run in runs(oracle, expected).items()},
        "expectation": timed(lambda: oracle.expect(inputs, draw.seed)),
        "full comparison": timed(lambda: oracle.check(expected, own)),
        "fast comparison": timed(lambda: oracle.check(glance, own)),
    }
    for name, milliseconds in parts.items():
        print(f"{name:<24} {milliseconds:10.3f} ms {milliseconds / call_ms:8.2f} calls")
    print(f"float64: {expected.where}, {expected.precision}")
    first = parts["expectation"] + parts["full comparison"]
    print(f"oracle_over_reference={first / call_ms:.2f}")


def runs(oracle: Oracle, expected: Expectation) -> dict[str, Callable[[], Any]]:
    """The runs of the reference that an expectation is made of."""
    reference, inputs, seed = oracle.reference, expected.inputs, expected.seed
    lower = formats.nudge(reference.precision(inputs))
    return {
        "float64": lambda: reference.exact(inputs, seed, expected.native),
        "inputs nudged": lambda: reference.lowered(inputs, lower, seed),
        "attention taken apart": lambda: reference.composed(inputs, seed),
    }


def elapsed_ms(act: Callable[[], Any], device: torch.device) -> float:
    """One call's time, of the device where it is a card."""
    if device.type == "cpu":
        started = time.perf_counter()
        act()
        return (time.perf_counter() - started) * 1e3
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize(device)
    start.record()
    act()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


if __name__ == "__main__":
    main()
