"""What the oracle costs: its full and fast checks in units of the reference's own call, and the memory it takes.

    python benchmarks/oracle_cost.py [PROBLEM] [--variant NAME] [--device auto] [--repeats 5]
    python benchmarks/oracle_cost.py --sizes 1 1024 [--device auto]

PROBLEM is a file or folder as `run_eval.py audit` takes it; attention/sdpa if none is given. Times are medians of warm
repeats, by events on a card, by the host's clock on the CPU. The last line is the whole of a first check, expectation
and comparison, over one reference call: the goal is below ten for a problem whose float64 copies fit the card.

With `--sizes`, problems made up for it grow from the first to the second size (megabytes of the one input), fourfold
from line to line. For each part of the judge's work: the most bytes of tensors alive at once, over those of a call's
inputs and outputs, without what was alive before; the bytes that operations read and write, over the same; and the
time over one reference call. `opening` is what the judge does before a baseline is there; `hard input` makes one set,
expects and checks an answer that is not the reference's own to the last bit; `own` the same for one that is.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._live_bytes import LiveBytes
from harness import environment
from harness.catalog import problems as catalog
from harness.config import CheckConfig, TimingConfig
from harness.errors import UsageError
from harness.judge import planning
from harness.judge.examiner import Examiner
from harness.judge.reference import Reference
from harness.machine.card_turns import CardTurns
from harness.oracle import formats
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
from harness.reading.reading import Reader
from harness.wire.messages import CandidateSource

# Made-up references of one input (rows, 4096): elementwise; along a row; one whose batch entries depend on each other.
BY_SIZE = {"relu": "torch.relu(x)", "softmax": "x.softmax(-1)", "centred": "x - x.mean()"}
MADE_UP = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.rand({rows}, 4096)]

def get_init_inputs():
    return []
"""
DEFAULT = str(Path(__file__).resolve().parents[1] / "problems/attention/sdpa.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", default=DEFAULT)
    parser.add_argument("--variant", default="default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", nargs=2, type=float, metavar=("MB", "MB"))
    arguments = parser.parse_args()
    try:
        device = environment.choose_devices(arguments.device)[0]
        if arguments.sizes:
            by_size(*arguments.sizes, torch.device(device.spec), device.name)
            return
        with Reader() as reader:
            problem = catalog.discover([arguments.problem], reader)[0]
        overrides = catalog.overrides(problem, arguments.variant)
    except UsageError as error:
        sys.exit(str(error))
    if overrides is None:
        sys.exit(f"{problem.id} has no variant '{arguments.variant}'")
    source = CandidateSource(path=str(problem.path.resolve()), entries=("Model",), overrides=overrides)
    reference = Reference(source, problem.precision, torch.device(device.spec), seed=1)
    print(f"{problem.id} {arguments.variant} {problem.precision} on {device.name}, torch {torch.__version__}")
    report(reference, arguments.repeats)


def by_size(smallest: float, largest: float, device: torch.device, name: str) -> None:
    """Print what each part of the judge's work takes, by size."""
    print(f"float32 on {name}, torch {torch.__version__}; over inputs and outputs: memory/traffic; over a call: time")
    with tempfile.TemporaryDirectory() as folder:
        for label, expression in BY_SIZE.items():
            megabytes = smallest
            while megabytes <= largest:
                path = Path(folder) / f"{label}_{megabytes:g}.py"
                path.write_text(MADE_UP.format(expression=expression, rows=max(2, round(megabytes * 2**20 / 16384))))
                found = parts(path, device)
                told = "  ".join(
                    f"{part} {peak:.1f}x/{touched:.0f}x {calls:.0f}" for part, peak, touched, calls in found
                )
                print(f"{label} {megabytes:g} MB: {told}", flush=True)
                megabytes *= 4


def parts(path: Path, device: torch.device) -> list[tuple[str, float, float, float]]:
    """Name, multiples of memory and traffic, and reference calls of each part of the work on the problem at `path`."""
    reference = Reference(CandidateSource(path=str(path), entries=("Model",)), "float32", device, seed=1)
    found: list[tuple[str, int, int, float]] = []

    def measured(part: str, act: Callable[[], Any]) -> Any:
        # Counting takes time of its own, so the two are taken one after the other.
        with LiveBytes() as live:
            act()
        kept: list[Any] = []
        milliseconds = elapsed_ms(lambda: kept.append(act()), device)
        found.append((part, live.peak, live.touched, milliseconds))
        return kept[0]

    def opened() -> planning.Workload:
        plan = planning.workload(reference, TimingConfig(), 600.0)
        Examiner(reference, (), CheckConfig(), plan, CardTurns())
        return plan

    plan = measured("opening", opened)
    oracle, draw = Oracle(reference.model, promises=reference.promises), reference.draw()
    inputs = list(draw.inputs)
    call_ms = min(elapsed_ms(lambda: reference.model(*inputs), device) for _ in range(3))
    full = [measured("expectation", lambda: oracle.expect(inputs, draw.seed))]
    measured("full check", lambda: oracle.check(full[0], full[0].native))
    full.clear()
    measured("glance", lambda: oracle.glance(inputs, draw.seed))
    glance = oracle.glance(inputs, draw.seed)
    other = glance.native * (1 + 2.0**-23)
    measured("fast check", lambda: oracle.check(glance, other))
    glance = other = None
    # One that changes every element.
    (stress,) = (one for one in SETS if one.name == "signs_up")

    def hard(off: float) -> None:
        (_, made), *_ = oracle.stress_inputs(inputs, draw.seed, [stress])
        told = oracle.sampled_stress(stress, made, inputs, draw.seed)
        if told is not None:
            oracle.check(told, told.native * (1 + off))

    measured("hard input", lambda: hard(2.0**-23))
    measured("own", lambda: hard(0.0))
    return [
        (part, peak / plan.call_bytes, touched / plan.call_bytes, milliseconds / call_ms)
        for part, peak, touched, milliseconds in found
    ]


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
        "inputs nudged": lambda: reference.coarsened(inputs, lower, seed),
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
