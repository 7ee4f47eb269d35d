"""What can be said on the command line: verbs, options, help and examples. Imports nothing heavy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.version import VERSION

SCRIPT = "run_eval.py"

EXAMPLES = """\
examples:
  python run_eval.py                                          the quickstart
  python run_eval.py run configs/seeds.yaml                   a config; the same command resumes it
  python run_eval.py run configs/seeds.yaml --dry-run         only list its jobs
  python run_eval.py run configs/quickstart.yaml --problems ../KernelBench/level1 --solutions my_kernels/
  python run_eval.py check my_kernels/                        compile candidates and read their source; no GPU
  python run_eval.py report results/quickstart --format csv
  python run_eval.py compare results/before results/after --fail-on slower,broken
  python run_eval.py doctor                                   what this machine lacks, and how to mend it
"""

RUN_EXAMPLES = """\
examples:
  python run_eval.py run configs/seeds.yaml --device cuda:0 --out results/seeds-h200
  python run_eval.py run configs/quickstart.yaml --variant default --set timing.precision=0.01
  python run_eval.py run configs/quickstart.yaml --solutions solutions/attention/sdpa/composed.py --fresh
"""

COMPARE_ABOUT = """\
Say of each candidate what became of it from run A to run B: faster, slower, same or can't tell (by the intervals of
its speedups), broken or fixed, missing or new. Candidates are matched by problem, variant, precision and name, whether
or not their source changed. Speedups on different devices, or over different baselines, are not compared.
"""

COMPARE_EXAMPLES = """\
examples:
  python run_eval.py compare results/before results/after
  python run_eval.py compare results/main results/branch --fail-on slower,broken,missing    a gate for CI
  python run_eval.py compare results/main results/branch --fail-on slower --fail-on not-compared
"""

AUDIT_EXAMPLES = """\
examples:
  python run_eval.py audit                                    every problem that comes with it
  python run_eval.py audit problems/attention/sdpa.py --variant small --compile
  python run_eval.py audit ../KernelBench/KernelBench/level1 --device cuda:0 --format markdown
"""

CHECK_ABOUT = """\
Read each candidate (contract, source screen), compile it and load it, and say what its kernels use. Needs no GPU: CUDA
candidates need nvcc, which `pip install -e '.[nvcc]'` brings. Nothing is timed or compared, and no kernel is run.
"""

CHECK_EXAMPLES = """\
examples:
  python run_eval.py check solutions/attention/sdpa/block_per_query.py
  python run_eval.py check my_kernels/ --problems ../KernelBench/KernelBench/level1
  python run_eval.py check 'solutions/**/*.py' --arch 100a --require ok

exit code: 0 every candidate is ok, or this machine cannot tell (unsure); 3 one fails, or with --require ok is unsure
"""


RAW = argparse.RawDescriptionHelpFormatter


def program() -> str:
    """What the user calls us by."""
    called = Path(sys.argv[0]).parts[-2:]
    if called == ("harness", "__main__.py"):
        return "python -m harness"
    return "assay" if called[-1:] == ("assay",) else SCRIPT


def _said(examples: str) -> str:
    """The examples as they are typed here."""
    return examples if program() == SCRIPT else examples.replace(f"python {SCRIPT}", program())


class Parser(argparse.ArgumentParser):
    """Says a mistake in one line and exits with 2, as the contract has it."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; see {self.prog} --help")


# What holds the parsers of all verbs; argparse keeps its type to itself.
Verbs = Any


def parser() -> Parser:
    """All verbs and options."""
    top = Parser(
        prog=program(),
        description="Evaluate kernel candidates: compile each, check its numbers, time it against PyTorch, rank them.",
        epilog=_said(EXAMPLES),
        formatter_class=RAW,
    )
    top.add_argument("--version", action="version", version=f"assay {VERSION}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    _run(verbs)
    _check(verbs)
    _audit(verbs)
    _report(verbs)
    _compare(verbs)
    verbs.add_parser("doctor", help="what this machine can do, what is missing, how to mend it")
    return top


def _run(verbs: Verbs) -> None:
    run = verbs.add_parser(
        "run",
        help="evaluate what a config selects",
        epilog=_said(RUN_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    run.add_argument("config", type=Path, metavar="CONFIG.yaml")
    run.add_argument("--problems", action="append", metavar="PATH", help="file, folder or glob; replaces the config's")
    run.add_argument("--solutions", action="append", metavar="PATH", help="file, folder or glob; replaces the config's")
    run.add_argument("--variant", action="append", metavar="NAME", help="size variant; replaces the config's")
    run.add_argument("--device", metavar="auto|cpu|cuda|cuda:N", help="replaces the config's")
    run.add_argument("--out", type=Path, metavar="DIR", help="run directory (default: results/<config's name>)")
    run.add_argument("--fresh", action="store_true", help="forget what is finished in the run directory")
    run.add_argument("--seed", type=int, metavar="N", help="replay a run's inputs instead of drawing secret ones")
    run.add_argument("--set", action="append", metavar="a.b=VALUE", help="set one config key; may be repeated")
    run.add_argument("--require", metavar="STATUS", help="exit with 3 unless every record has this status")
    run.add_argument(
        "--sandbox",
        choices=("auto", "require", "off"),
        help="what this machine has (auto), all of it or no run (require), or nothing, for debugging (off)",
    )
    run.add_argument("--dry-run", action="store_true", help="list the jobs and stop")


def _check(verbs: Verbs) -> None:
    check = verbs.add_parser(
        "check",
        help="contract, source screen and compile only; needs no GPU",
        description=CHECK_ABOUT,
        epilog=_said(CHECK_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="candidate file, folder or glob")
    check.add_argument(
        "--problems", action="append", default=[], metavar="PATH", help="where to look for problems first"
    )
    check.add_argument("--arch", metavar="90a", help="architecture to compile for (default: the card's, else 90a)")
    check.add_argument("--jobs", type=int, metavar="N", help="candidates at a time (default: half the cores)")
    check.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for each candidate")
    check.add_argument(
        "--out", type=Path, default=Path("results/check"), metavar="DIR", help="for the compilers' output"
    )
    check.add_argument("--require", choices=("ok",), help="exit with 3 unless every candidate is, unsure ones included")


def _audit(verbs: Verbs) -> None:
    audit = verbs.add_parser(
        "audit",
        help="try known wrong and known right answers on problems",
        epilog=_said(AUDIT_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    audit.add_argument("problems", nargs="*", default=["problems"], metavar="PROBLEM", help="file, folder or glob")
    audit.add_argument("--variant", action="append", metavar="NAME", help="size variants (default: default)")
    audit.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    audit.add_argument("--compile", action="store_true", help="count torch.compile among the right answers, too")
    audit.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="for each problem")
    audit.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replace a module-level constant where a problem has it, for problems too large as written",
    )
    audit.add_argument("--jobs", type=int, default=1, metavar="N", help="problems at a time, on one device")
    audit.add_argument("--seed", type=int, metavar="N", help="replay the inputs of an audit")
    audit.add_argument("--format", default="terminal", choices=("terminal", "markdown"))
    audit.add_argument("--require", choices=("sound",), help="exit with 3 unless every problem is")


def _report(verbs: Verbs) -> None:
    report = verbs.add_parser("report", help="show a finished or running run", allow_abbrev=False)
    report.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    report.add_argument("--format", default="terminal", choices=("terminal", "csv", "markdown"))


def _compare(verbs: Verbs) -> None:
    compare = verbs.add_parser(
        "compare",
        help="which candidates got faster, slower, or can't be told apart",
        description=COMPARE_ABOUT,
        epilog=_said(COMPARE_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    compare.add_argument("run_a", type=Path, metavar="RUN_A")
    compare.add_argument("run_b", type=Path, metavar="RUN_B")
    compare.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="OUTCOME",
        help="exit with 3 if any candidate is slower, broken (passed in A, not in B), missing (only in A) or "
        "not-compared; may be repeated, or a list with commas",
    )
