"""The command line: verbs and their arguments; each verb calls one function."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError, nearest

if TYPE_CHECKING:
    from harness.config import Config

QUICKSTART = "configs/quickstart.yaml"

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
  python run_eval.py audit                                    every problem of the repository
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


class Parser(argparse.ArgumentParser):
    """Says a mistake in one line and exits with 2, as the contract has it."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 carried out, 1 our failure, 2 usage, 3 a gate not passed."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = parser().parse_args(words or ["run", QUICKSTART])
        if arguments.verb is None:
            raise UsageError("name a verb: run, audit, report, compare or doctor; see run_eval.py --help")
        return int(arguments.carry_out(arguments, words))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; what is finished is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def parser() -> Parser:
    """All verbs and options."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser(
        prog="run_eval.py",
        description="Evaluate kernel candidates: compile each, check its numbers, time it against PyTorch, rank them.",
        epilog=EXAMPLES,
        formatter_class=raw,
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    run = verbs.add_parser(
        "run", help="evaluate what a config selects", epilog=RUN_EXAMPLES, formatter_class=raw, allow_abbrev=False
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
    run.set_defaults(carry_out=_run)
    check = verbs.add_parser(
        "check",
        help="contract, source screen and compile only; needs no GPU",
        description=CHECK_ABOUT,
        epilog=CHECK_EXAMPLES,
        formatter_class=raw,
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
    check.set_defaults(carry_out=_check)
    audit = verbs.add_parser(
        "audit",
        help="try known wrong and known right answers on problems",
        epilog=AUDIT_EXAMPLES,
        formatter_class=raw,
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
    audit.set_defaults(carry_out=_audit)
    report = verbs.add_parser("report", help="show a finished or running run", allow_abbrev=False)
    report.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    report.add_argument("--format", default="terminal", choices=("terminal", "csv", "markdown"))
    report.set_defaults(carry_out=_report)
    compare = verbs.add_parser(
        "compare",
        help="which candidates got faster, slower, or can't be told apart",
        description=COMPARE_ABOUT,
        epilog=COMPARE_EXAMPLES,
        formatter_class=raw,
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
    compare.set_defaults(carry_out=_compare)
    doctor = verbs.add_parser("doctor", help="what this machine can do, what is missing, how to mend it")
    doctor.set_defaults(carry_out=_doctor)
    return top


def _run(arguments: argparse.Namespace, words: list[str]) -> int:
    import msgspec
    from rich.console import Console

    from harness import config as configs
    from harness import session
    from harness.records import Status
    from harness.reports import terminal
    from harness.store import run_directory

    if arguments.require and arguments.require not in list(Status):
        raise UsageError(f"--require {arguments.require}: {nearest(arguments.require, list(Status))}")
    config = configs.load(arguments.config, arguments.set)
    replaced = {
        "problems": arguments.problems,
        "solutions": arguments.solutions,
        "variants": arguments.variant,
        "device": arguments.device,
        "seed": arguments.seed,
        "sandbox": arguments.sandbox,
    }
    config = msgspec.structs.replace(config, **{name: value for name, value in replaced.items() if value is not None})
    if arguments.dry_run:
        return _list_jobs(config)
    out = arguments.out or Path(config.out or configs.default_out(arguments.config))
    console = Console()
    records = session.run(config, out, console, command=["run_eval.py", *words], fresh=arguments.fresh)
    console.print()
    manifest, _ = run_directory.read(out)
    terminal.leaderboard(records, console, manifest)
    console.print(f"\nin {out}: records.jsonl, results.csv, leaderboard.md, logs/", highlight=False, soft_wrap=True)
    if arguments.require and any(record.status != arguments.require for record in records):
        return 3
    return 0


def _list_jobs(config: Config) -> int:
    from harness import session

    plan = session.plan(config)
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    for job in plan.jobs:
        print(job.title)
    print(f"{len(plan.jobs)} jobs", file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console

    from harness import check, environment
    from harness.reports import check_table

    console = Console()
    rows = []
    with console.status("check") as status:
        found = check.run(
            arguments.files,
            problems=arguments.problems,
            architecture=arguments.arch,
            logs=arguments.out,
            timeout_s=arguments.timeout,
            at_once=max(1, arguments.jobs or environment.cores() // 2),
            started=lambda title: status.update(f"checking {title}"),
        )
        for row in found:
            rows.append(row)
            check_table.show(row, console)
    console.print(check_table.summary(rows))
    accepted = ("ok",) if arguments.require else ("ok", "unsure")
    return 0 if all(row.verdict in accepted for row in rows) else 3


def _audit(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console

    from harness import audit
    from harness.reports import audit_table

    console = Console(stderr=arguments.format == "markdown")
    rows = []
    with console.status("audit") as status:
        found = audit.run(
            arguments.problems,
            variants=arguments.variant or ["default"],
            constants=_constants(arguments.constant),
            device=arguments.device,
            compiled=arguments.compile,
            timeout_s=arguments.timeout,
            seed=arguments.seed,
            at_once=max(1, arguments.jobs),
            started=lambda title: status.update(f"auditing {title}"),
        )
        for row in found:
            rows.append(row)
            if not console.is_terminal:
                console.print(f"{row.verdict:<8} {row.problem} {row.variant}: {audit_table.line(row)}", soft_wrap=True)
    if arguments.format == "markdown":
        print(audit_table.markdown(rows), end="")
    else:
        audit_table.show(rows, console)
    return 3 if arguments.require and any(row.verdict != arguments.require for row in rows) else 0


def _constants(words: list[str]) -> dict[str, object]:
    import ast

    constants: dict[str, object] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            constants[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise UsageError(f"--constant {word}: write it as NAME=VALUE, with a number or another literal") from None
    return constants


def _report(arguments: argparse.Namespace, words: list[str]) -> int:
    from harness.store import run_directory

    manifest, records = run_directory.read(arguments.run_dir)
    if arguments.format == "terminal":
        from rich.console import Console

        from harness.reports import terminal

        terminal.leaderboard(records, Console(), manifest)
    elif arguments.format == "csv":
        from harness.reports import rows

        print(rows.to_csv(records), end="")
    else:
        from harness.reports import markdown

        print(markdown.leaderboard(records, manifest), end="")
    return 0


def _doctor(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console

    from harness import doctor
    from harness.reports import doctor_table

    findings = doctor.examine()
    doctor_table.show(findings, Console())
    return 1 if any(finding.vital and not finding.ok for finding in findings) else 0


def _compare(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console

    from harness.reports import compare, compare_table
    from harness.store import run_directory

    (manifest_a, a), (manifest_b, b) = run_directory.read(arguments.run_a), run_directory.read(arguments.run_b)
    rows = compare.rows(a, b)
    failing = compare.failing(rows, [word.strip() for part in arguments.fail_on for word in part.split(",")])
    console = Console()
    console.print(compare_table.head("A", arguments.run_a, manifest_a), soft_wrap=True)
    console.print(compare_table.head("B", arguments.run_b, manifest_b), soft_wrap=True)
    compare_table.comparison(rows, compare.notes(rows, manifest_a, manifest_b), console)
    if failing:
        print(f"--fail-on: {compare.listed(failing)}", file=sys.stderr)
    return 3 if failing else 0
