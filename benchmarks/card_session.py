"""Everything that is measured on a card, in parts that each fit a ten-minute lease.

    python benchmarks/card_session.py PART... [--out DIR]
        parts: corpus, clock, oracle, compile, throughput, seeds, starter

Each step has a limit of its own and a log in DIR; a step that fails or runs out of time does not keep the next from
running. A copy of results/seeds-h200 or results/starter-h200 as DIR/seeds or DIR/starter is resumed. The table at the
end gives each step's exit code, its seconds and its last line, which is where the benchmarks of this folder put their
result.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Step:
    """One command, in words, and the seconds it may take; {out} stands for the folder of results."""

    name: str
    words: str
    limit_s: float


PARTS = {
    "corpus": (
        Step("detection", "benchmarks/detection.py --device cuda --out {out}/detection", 340),
        Step("gpu tests", "-m pytest -q -m gpu tests -p no:cacheprovider", 200),
    ),
    "clock": (
        Step("precision", "benchmarks/precision.py --out {out}/precision", 260),
        Step("precision, 5 us", "benchmarks/precision.py --sizes 5us --out {out}/precision-5us", 120),
        Step("clock agreement", "benchmarks/clock_agreement.py --within 55", 80),
        Step("sandbox", "benchmarks/sandbox.py", 60),
    ),
    "oracle": (
        Step("oracle, sdpa", "benchmarks/oracle_cost.py problems/attention/sdpa.py", 90),
        Step("oracle, softmax", "benchmarks/oracle_cost.py problems/fused/gemm_batchnorm_scale_softmax.py", 60),
        Step("own problems", "run_eval.py audit --variant default --variant small --jobs 2 --format markdown", 240),
    ),
    "compile": (
        Step("compile cost", "benchmarks/compile_cost.py --jobs 5", 240),
        Step("throughput, stock", "benchmarks/throughput.py --parts stock", 320),
    ),
    "throughput": (Step("throughput, lean", "benchmarks/throughput.py --parts lean cached", 500),),
    "seeds": (Step("seeds", "run_eval.py run configs/seeds.yaml --out {out}/seeds", 420),),
    "starter": (Step("starter", "run_eval.py run configs/starter.yaml --out {out}/starter", 580),),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART")
    parser.add_argument("--out", type=Path, default=ROOT / "results/card_session")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = [carry_out(step, arguments.out) for part in arguments.parts for step in PARTS[part]]
    print("\n".join(rows))


def carry_out(step: Step, out: Path) -> str:
    """Run a step; its line of the table."""
    log = out / f"{step.name.replace(',', '').replace(' ', '_')}.log"
    command = [sys.executable, *step.words.format(out=out).split()]
    started = time.monotonic()
    with log.open("w") as file:
        try:
            code = str(
                subprocess.run(
                    command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=step.limit_s, check=False
                ).returncode
            )
        except subprocess.TimeoutExpired:
            code = "late"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"{step.name:<18} {code:>4} {time.monotonic() - started:6.0f} s  {lines[-1][:150] if lines else ''}"


if __name__ == "__main__":
    main()
