"""The commands and options of the command line, with their help and examples. Imports nothing heavy."""

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
  python run_eval.py run configs/seeds.yaml --dry-run         list its jobs
  python run_eval.py run configs/quickstart.yaml --problems ../KernelBench/level1 --solutions my_kernels/
  python run_eval.py check my_kernels/                        compile candidates and screen their source; no GPU
  python run_eval.py report results/quickstart --format csv
  python run_eval.py compare results/before results/after --fail-on slower,broken
  python run_eval.py doctor                                   what this machine lacks, and how to fix it
"""

RUN_EXAMPLES = """\
examples:
  python run_eval.py run configs/seeds.yaml --device cuda:0 --out results/seeds-h200
  python run_eval.py run configs/quickstart.yaml --variant default --set timing.precision=0.01
  python run_eval.py run configs/quickstart.yaml --solutions solutions/attention/sdpa/composed.py --fresh
"""

COMPARE_ABOUT = """\
Show how each candidate changed from run A to run B: faster, slower, same or can't tell (by the intervals of its
speedups), broken or fixed, missing or new. Candidates are matched by problem, variant, precision and name, whether or
not their source changed. Speedups on different devices, or over different baselines, are not compared.
"""

COMPARE_EXAMPLES = """\
examples:
  python run_eval.py compare results/before results/after
  python run_eval.py compare results/main results/branch --fail-on slower,broken,missing    a gate for CI
  python run_eval.py compare results/main results/branch --fail-on slower --fail-on not-compared
"""

AUDIT_EXAMPLES = """\
examples:
  python run_eval.py audit                                    every problem that comes with Assay
  python run_eval.py audit problems/attention/sdpa.py --variant small --compile
  python run_eval.py audit ../KernelBench/KernelBench/level1 --device cuda:0 --format markdown
"""

CHECK_ABOUT = """\
Read each candidate (contract, source screen), compile it, load it, and show what its kernels use. Needs no GPU. CUDA
candidates need nvcc, which `pip install -e '.[nvcc]'` installs. Nothing is timed or compared, and no kernel is run.
"""

CHECK_EXAMPLES = """\
examples:
  python run_eval.py check solutions/attention/sdpa/block_per_query.py
  python run_eval.py check my_kernels/ --problems ../KernelBench/KernelBench/level1
  python run_eval.py check 'solutions/**/*.py' --arch 100a --require ok

exit code: 0 if every candidate is ok or unsure (this machine cannot decide); 3 if one fails, or with --require ok if
one is unsure
"""


RAW = argparse.RawDescriptionHelpFormatter


def program() -> str:
    """The name of the program as the user typed it."""
    called = Path(sys.argv[0]).parts[-2:]
    if called == ("harness", "__main__.py"):
        return "python -m harness"
    return "assay" if called[-1:] == ("assay",) else SCRIPT


def _said(examples: str) -> str:
    """The examples with the name that the user typed."""
    return examples if program() == SCRIPT else examples.replace(f"python {SCRIPT}", program())


class Parser(argparse.ArgumentParser):
    """Reports a usage error in one line; `cli.main` then returns 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; see {self.prog} --help")


# The object that holds the parsers of all commands; argparse has no public type for it.
Commands = Any


def parser() -> Parser:
    """All commands and options."""
    top = Parser(
        prog=program(),
        description="Evaluate kernel candidates: compile each, check its numbers, time it against PyTorch, rank them.",
        epilog=_said(EXAMPLES),
        formatter_class=RAW,
    )
    top.add_argument("--version", action="version", version=f"assay {VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    _run(commands)
    _check(commands)
    _audit(commands)
    _report(commands)
    _compare(commands)
    commands.add_parser("doctor", help="show what this machine can do, what is missing, and how to fix it")
    return top


def _run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="evaluate the candidates that a config selects",
        epilog=_said(RUN_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    run.add_argument("config", type=Path, metavar="CONFIG.yaml")
    run.add_argument("--problems", action="append", metavar="PATH", help="file, folder or glob; replaces the config's")
    run.add_argument("--solutions", action="append", metavar="PATH", help="file, folder or glob; replaces the config's")
    run.add_argument("--variant", action="append", metavar="NAME", help="size variant; replaces the config's")
    run.add_argument("--device", metavar="auto|cpu|cuda|cuda:N", help="device; replaces the config's")
    run.add_argument("--out", type=Path, metavar="DIR", help="run directory (default: results/<config's name>)")
    run.add_argument("--fresh", action="store_true", help="delete the finished results in the run directory first")
    run.add_argument("--seed", type=int, metavar="N", help="seed of the inputs, to replay a run; secret if not given")
    run.add_argument("--set", action="append", metavar="a.b=VALUE", help="set one config key; may be repeated")
    run.add_argument("--require", metavar="STATUS", help="exit with 3 unless every record has this status")
    run.add_argument(
        "--sandbox",
        choices=("auto", "require", "off"),
        help="auto: the layers that this machine has; require: all layers, or do not run; off: none, for debugging",
    )
    run.add_argument("--dry-run", action="store_true", help="list the jobs and stop")


def _check(commands: Commands) -> None:
    check = commands.add_parser(
        "check",
        help="compile candidates and screen their source; needs no GPU",
        description=CHECK_ABOUT,
        epilog=_said(CHECK_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="candidate file, folder or glob")
    check.add_argument("--problems", action="append", default=[], metavar="PATH", help="search for problems here first")
    check.add_argument(
        "--arch", metavar="90a", help="architecture to compile for (default: this machine's GPU, else 90a)"
    )
    check.add_argument("--jobs", type=int, metavar="N", help="candidates checked in parallel (default: half the cores)")
    check.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="time for each candidate")
    check.add_argument(
        "--out", type=Path, default=Path("results/check"), metavar="DIR", help="folder for the compilers' output"
    )
    check.add_argument("--require", choices=("ok",), help="exit with 3 unless every candidate is ok")


def _audit(commands: Commands) -> None:
    audit = commands.add_parser(
        "audit",
        help="test problems with known wrong and known right answers",
        epilog=_said(AUDIT_EXAMPLES),
        formatter_class=RAW,
        allow_abbrev=False,
    )
    audit.add_argument("problems", nargs="*", default=["problems"], metavar="PROBLEM", help="file, folder or glob")
    audit.add_argument("--variant", action="append", metavar="NAME", help="size variant (default: default)")
    audit.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    audit.add_argument("--compile", action="store_true", help="also use torch.compile as a right answer")
    audit.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="time for each problem")
    audit.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replace a module-level constant in problems that have it, for problems too large as written",
    )
    audit.add_argument("--jobs", type=int, default=1, metavar="N", help="problems audited in parallel, on one device")
    audit.add_argument("--seed", type=int, metavar="N", help="seed of the inputs, to replay an audit")
    audit.add_argument("--format", default="terminal", choices=("terminal", "markdown"))
    audit.add_argument("--require", choices=("sound",), help="exit with 3 unless every problem is sound")


def _report(commands: Commands) -> None:
    report = commands.add_parser("report", help="show the results of a run, finished or not", allow_abbrev=False)
    report.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    report.add_argument("--format", default="terminal", choices=("terminal", "csv", "markdown"))


def _compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="show which candidates got faster or slower between two runs",
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
        "not-compared; may be repeated, or be a list with commas",
    )
