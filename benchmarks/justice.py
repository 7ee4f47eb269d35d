"""How often the oracle is wrong about kernels that were written without knowledge of it.

    python benchmarks/justice.py [../KernelBench] [--only WORD] [--seeds N] [--verbose]

Each file of benchmarks/justice is about one problem: two honest and two wrong kernels, as functions in torch of the
reference module and its inputs, at sizes that a CPU can bear. Those of `operators` have the problem, too: 23 operators
with 92 kernels, written from the operators' definitions. The others are for 100 problems of a KernelBench checkout,
which this repository does not bring, with 400 kernels written from the problem files alone; without a checkout they are
left out. Judged as in oracle_quality.py, with the same last line; the exit status is 1 unless both counts are 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.kernelbench import levels_in
from benchmarks.oracle_quality import Problem, report, try_out
from harness.wire import weights

FILES = Path(__file__).resolve().parent / "justice"
# The folder of those problems that are no KernelBench's: each file has the problem, too.
OPERATORS = "operators"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", help="a checkout of KernelBench (none: the operators alone)")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--seeds", type=int, default=1, help="how many weights and inputs to try each problem with (1)")
    parser.add_argument("--verbose", action="store_true", help="the oracle's sentence under each refusal")
    options = parser.parse_args()
    root = levels_in(options.checkout) if options.checkout else None
    torch.set_num_threads(1)
    counts, misjudged = Counter[str](), Counter[str]()
    start = time.perf_counter()
    with torch.no_grad():
        for seed in range(options.seeds):
            for problem in problems(root, options.only, seed):
                tried, missed = try_out(problem, seed, options.verbose)
                counts += tried
                misjudged += missed
    return report(counts, misjudged, time.perf_counter() - start)


def problems(root: Path | None, only: str, seed: int) -> Iterator[Problem]:
    """Those whose name contains `only`, with the weights and inputs of a seed; without `root` the operators alone."""
    for file in sorted(FILES.rglob("*.py")):
        name = f"{file.parent.name}/{file.stem}"
        if only not in name:
            continue
        kernels = _loaded(file)
        if file.parent.name == OPERATORS:
            yield labelled(name, kernels, kernels, seed)
        elif root is not None:
            (source,) = (root / file.parent.name).glob(f"{int(file.stem[:3])}_*.py")
            yield labelled(name, _sized(_loaded(source), kernels), kernels, seed)


def _sized(problem: ModuleType, kernels: ModuleType) -> ModuleType:
    """A problem of KernelBench at the sizes that the kernels' file names."""
    for constant, value in kernels.SIZES.items():
        if not hasattr(problem, constant):
            sys.exit(
                f"{problem.__file__} has no {constant}: it is not the version that {kernels.__file__} was written for"
            )
        setattr(problem, constant, value)
    return problem


def labelled(name: str, problem: ModuleType, kernels: ModuleType, seed: int) -> Problem:
    """A problem with its kernels, and the weights of a seed."""
    torch.manual_seed(seed)
    # As the judge constructs it.
    with weights.drawn(weights.Drawn(seed)) as drawn:
        module = problem.Model(*problem.get_init_inputs())
    weights.draw_the_rest(module, drawn)
    made = Problem(name, module, problem.get_inputs)
    for kernel_name, kernel in inspect.getmembers(kernels, inspect.isfunction):
        label, _, rest = kernel_name.partition("_")
        if label in ("honest", "wrong"):
            (made.right if label == "honest" else made.wrong)[rest] = kernel
    return made


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"justice_{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
