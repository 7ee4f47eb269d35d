"""One candidate by KernelBench's own evaluator, in a process of its own, as its scripts do.

Called by against_kernelbench.py: CHECKOUT PROBLEM CANDIDATE BUILD_FOLDER RESULT. RESULT is a file: candidates print.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# Its scripts' defaults.
CORRECTNESS_TRIALS, TIMING_TRIALS = 5, 100


def main() -> None:
    checkout, problem, candidate, build, result = map(Path, sys.argv[1:])
    # Both layouts of its repository: a package, and before that a folder of modules.
    sys.path[:0] = [str(checkout / "src"), str(checkout)]
    try:
        from kernelbench.eval import eval_kernel_against_ref
    except ModuleNotFoundError as error:
        if error.name != "kernelbench":
            raise
        from src.eval import eval_kernel_against_ref

    found = eval_kernel_against_ref(
        problem.read_text(),
        candidate.read_text(),
        num_correct_trials=CORRECTNESS_TRIALS,
        num_perf_trials=TIMING_TRIALS,
        measure_performance=True,
        build_dir=build,
    )
    told: dict[str, object] = {"verdict": "none"}
    if found is not None:
        told["verdict"] = "not_compiled" if not found.compiled else "correct" if found.correctness else "incorrect"
        ours, theirs = getattr(found, "runtime", -1.0), getattr(found, "ref_runtime", -1.0)
        if ours > 0 and theirs > 0:
            told["speedup"] = theirs / ours
    result.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
