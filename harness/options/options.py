"""The commands and options of the command line, with their help and examples. Imports nothing heavy."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.options import texts
from harness.options.arguments import amount, count, place, port, seed
from harness.version import VERSION

SCRIPT = "run_eval.py"
QUICKSTART = "configs/quickstart.yaml"

ALL = "show every candidate in the terminal, also those that need what this machine lacks, and of more than 250"
RAW = argparse.RawDescriptionHelpFormatter


def program() -> str:
    """The name of the program as the user typed it."""
    called = Path(sys.argv[0]).parts[-2:]
    if called == ("harness", "__main__.py"):
        return "python -m harness"
    return "assay" if called[-1:] == ("assay",) else SCRIPT


def typed() -> str:
    """The program as the beginning of a command to be copied into a shell."""
    return f"python {SCRIPT}" if program() == SCRIPT else program()


def _said(examples: str) -> str:
    """The examples with the name that the user typed."""
    return examples.replace(f"python {SCRIPT}", typed())


# As argparse says that a word is none of those that it knows.
NO_CHOICE = re.compile(r"(?P<said>.*invalid choice: '(?P<word>[^']*)') \(choose from (?P<choices>.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Reports a usage error in one line; `cli.main` then returns 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        if found := NO_CHOICE.fullmatch(message):
            choices = [word.strip("'") for word in found["choices"].split(", ")]
            message = f"{found['said']}; {nearest(found['word'], choices)}"
        raise UsageError(f"{message}; see {self.prog} --help")


# The object that holds the parsers of all commands; argparse has no public type for it.
Commands = Any


def parser() -> Parser:
    """All commands and options."""
    top = Parser(
        prog=program(),
        usage="%(prog)s [-h] [--version] [COMMAND ...]",
        description="Evaluate kernel candidates: compile each, check its numbers, time it against PyTorch, rank them.\n"
        "Without a command: the quickstart, which needs no GPU.",
        epilog=_said(texts.EXAMPLES),
        formatter_class=RAW,
    )
    top.add_argument("--version", action="version", version=f"assay {VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", prog=program(), parser_class=Parser)
    _run(commands)
    _new(commands)
    _check(commands)
    _audit(commands)
    _report(commands)
    _compare(commands)
    _import(commands)
    _serve(commands)
    _profile(commands)
    about = "show what this machine can do, what is missing, and how to fix it"
    add = _command(commands, "doctor", about, texts.DOCTOR_ABOUT, texts.DOCTOR_EXAMPLES).add_argument
    add("--json", action="store_true", help="print what was found as JSON")
    trial = "also evaluate a right candidate, a wrong one and a cheat on each device, whose verdicts are known"
    add("--try", action="store_true", dest="trial", help=trial)
    about = "print a script that completes commands and options in a shell"
    add = _command(commands, "completion", about, texts.COMPLETION_ABOUT, texts.COMPLETION_EXAMPLES).add_argument
    add("shell", choices=("bash", "zsh"), help="the shell")
    return top


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line. Raises UsageError, which names the command's own help and its nearest option."""
    top = parser()
    arguments, unknown = top.parse_known_args(words)
    if unknown:
        # argparse has it reported by the parser of all commands, which does not know the command's options.
        asked = _of_commands(top).get(arguments.command, top)
        option = unknown[0].partition("=")[0]
        close = difflib.get_close_matches(option, asked._option_string_actions, n=1) if option[:1] == "-" else []
        meant = f"; did you mean '{close[0]}'?" if close else ""
        asked.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    return arguments


def _of_commands(top: Parser) -> dict[str, Parser]:
    return next(action.choices for action in top._actions if isinstance(action.choices, dict))


def completion(shell: str) -> str:
    """A script for bash or zsh that completes commands, options, their choices and files after `assay`."""
    import shtab

    top = parser()
    top.prog = "assay"
    commands: Commands = _of_commands(top)
    for action in (action for command in commands.values() for action in command._actions):
        if action.type is place or action.metavar in ("PATH", "FILE", "PROBLEM"):
            action.complete = shtab.FILE
    return shtab.complete(top, shell=shell)


def _command(commands: Commands, name: str, summary: str, about: str, examples: str) -> Parser:
    command: Parser = commands.add_parser(
        name, help=summary, description=about, epilog=_said(examples), formatter_class=RAW, allow_abbrev=False
    )
    return command


def _run(commands: Commands) -> None:
    about = "evaluate the candidates that a config selects"
    add = _command(commands, "run", about, texts.RUN_ABOUT, texts.RUN_EXAMPLES).add_argument
    what = "what to evaluate: a config (configs/every-option.yaml shows every key), or one candidate's file"
    add("config", type=place, metavar="CONFIG.yaml|CANDIDATE.py", help=what)
    add("--problem", default="", metavar="NAME", help="the problem that CANDIDATE.py solves: attention/sdpa, or a file")
    problems = "file, folder or glob, or a pack; may be repeated. With CANDIDATE.py: where its problem is"
    add("--problems", action="append", metavar="PATH", help=problems)
    solutions = "file, folder or glob, or other people's pack, which is imported first; may be repeated"
    add("--solutions", action="append", metavar="PATH", help=solutions)
    add("--variant", action="append", metavar="NAME", help="sizes of the problems; may be repeated")
    add("--device", metavar="auto|cpu|cuda|cuda:N", help="what to run on; auto: every GPU, or else the CPU")
    out = "run directory (default: results/<config's name>, or results/<set>.<problem>.<candidate>)"
    add("--out", type=place, metavar="DIR", help=out)
    add("--fresh", action="store_true", help="delete the finished results in the run directory first")
    add("--seed", type=seed, metavar="N", help="seed of the inputs, to replay a run; secret if not given")
    add("--set", action="append", metavar="a.b=VALUE", help="set one config key; may be repeated")
    add("--require", metavar="STATUS", help="exit with 3 unless every record has this status and nothing is left out")
    add(
        "--sandbox",
        choices=("auto", "require", "off"),
        help="auto: the layers that this machine has; require: all layers, or do not run; off: none, for debugging",
    )
    add("--all", action="store_true", help=ALL)
    add("--dry-run", action="store_true", help="list the jobs and stop")
    _executor(add)


def _executor(add: Callable[..., Any]) -> None:
    where = "local: this machine; ray: all machines of a Ray cluster (default: local)"
    add("--executor", default="local", choices=("local", "ray"), help=where)
    which = "Ray cluster: auto, the one of this machine; local, one begun here; or HOST:PORT (default: auto)"
    add("--address", default="", metavar="ADDRESS", help=which)


def _new(commands: Commands) -> None:
    about = "write a file to begin with: a problem, or a candidate of one"
    add = _command(commands, "new", about, texts.NEW_ABOUT, texts.NEW_EXAMPLES).add_argument
    add("kind", choices=("problem", "solution"), help="what to write")
    add("name", metavar="NAME", help="SET/NAME of a problem, SET/PROBLEM/NAME of a candidate")
    add("--root", type=place, default=Path(), metavar="DIR", help="write below this folder (default: the current one)")


def _check(commands: Commands) -> None:
    about = "compile candidates and screen their source; needs no GPU"
    add = _command(commands, "check", about, texts.CHECK_ABOUT, texts.CHECK_EXAMPLES).add_argument
    add("files", nargs="+", metavar="FILE", help="candidate file, folder or glob")
    problems = "search for problems here first; may be repeated (default: the nearest problems/ above a candidate)"
    add("--problems", action="append", default=[], metavar="PATH", help=problems)
    add(
        "--arch", metavar="90a", help="architecture to compile for, 90a or 9.0a (default: this machine's GPU, else 90a)"
    )
    add("--jobs", type=count, metavar="N", help="candidates checked in parallel (default: half the cores)")
    add("--timeout", type=amount, default=600.0, metavar="SECONDS", help="time for each candidate (default: 600)")
    out = "folder for the compilers' output (default: results/check)"
    add("--out", type=place, default=Path("results/check"), metavar="DIR", help=out)
    add("--require", choices=("ok",), help="exit with 3 unless every candidate is ok")


def _audit(commands: Commands) -> None:
    about = "test problems with known wrong and known right answers"
    add = _command(commands, "audit", about, texts.AUDIT_ABOUT, texts.AUDIT_EXAMPLES).add_argument
    problems = "file, folder or glob (default: problems)"
    add("problems", nargs="*", default=["problems"], metavar="PROBLEM", help=problems)
    add("--variant", action="append", metavar="NAME", help="sizes of the problems; may be repeated (default: default)")
    device = "what to run on (default: auto, the first GPU, or else the CPU)"
    add("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help=device)
    add("--compile", action="store_true", help="also use torch.compile as a right answer")
    add("--timeout", type=amount, default=300.0, metavar="SECONDS", help="time for each problem (default: 300)")
    constant = (
        "replace a module-level constant in problems that have it, if they are too large as written; may be repeated"
    )
    add("--constant", action="append", default=[], metavar="NAME=VALUE", help=constant)
    add("--jobs", type=count, default=1, metavar="N", help="problems audited in parallel, on one device (default: 1)")
    add("--seed", type=seed, metavar="N", help="seed of the inputs, to replay an audit; secret if not given")
    form = "a table, or Markdown of the problems that are not sound (default: terminal)"
    add("--format", default="terminal", choices=("terminal", "markdown"), help=form)
    add("--require", choices=("sound",), help="exit with 3 unless every problem is sound")


def _report(commands: Commands) -> None:
    about = "show the results of a run, finished or not"
    add = _command(commands, "report", about, texts.REPORT_ABOUT, texts.REPORT_EXAMPLES).add_argument
    add("run_dir", type=place, metavar="RUN_DIR", help="folder of the run, like results/quickstart")
    form = (
        "csv: every figure with all digits; markdown: the page leaderboard.md; html: the page report.html, one file "
        "with every candidate's figures, source and log; junit: XML for CI systems (default: terminal)"
    )
    add("--format", default="terminal", choices=("terminal", "csv", "markdown", "html", "junit"), help=form)
    claims = "what the sources of imported candidates claim, beside the verdicts, and each disagreement"
    add("--claims", action="store_true", help=claims)
    samples = "of runs with several samples of a problem: pass@k, fast_p@k and geometric means, as CSV (samples.csv)"
    add("--samples", action="store_true", help=samples)
    add("--all", action="store_true", help=ALL)


def _compare(commands: Commands) -> None:
    about = "show which candidates got faster or slower between two runs"
    add = _command(commands, "compare", about, texts.COMPARE_ABOUT, texts.COMPARE_EXAMPLES).add_argument
    add("run_a", type=place, metavar="RUN_A", help="folder of the run before")
    add("run_b", type=place, metavar="RUN_B", help="folder of the run after")
    fail_on = (
        "exit with 3 if any candidate is slower, broken (passed in A, not in B), missing (only in A) or not-compared; "
        "may be repeated, or be a list with commas"
    )
    add("--fail-on", action="append", default=[], metavar="CHANGE", help=fail_on)
    form = "html: one page with each candidate as a slope from A to B (default: terminal)"
    add("--format", default="terminal", choices=("terminal", "html"), help=form)


def _serve(commands: Commands) -> None:
    about = "evaluate candidates that come over HTTP"
    add = _command(commands, "serve", about, texts.SERVE_ABOUT, texts.SERVE_EXAMPLES).add_argument
    what = "how to evaluate, and the problems that clients may name; its candidates count for nothing"
    add("config", type=place, metavar="CONFIG.yaml", help=what)
    add("--problems", action="append", metavar="PATH", help="file, folder or glob in place of the config's; repeatable")
    add("--device", metavar="auto|cpu|cuda|cuda:N", help="what to run on; auto: every GPU, or else the CPU")
    add("--set", action="append", metavar="a.b=VALUE", help="set one config key; may be repeated")
    out = "folder for accepted tasks and their results, of this service alone (default: results/serve)"
    add("--dir", type=place, default=Path("results/serve"), metavar="DIR", help=out)
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    add("--port", type=port, default=8642, help="port to listen on (default: 8642)")
    secret = "file with the token that clients send (default: the environment's ASSAY_TOKEN)"
    add("--token-file", type=place, metavar="FILE", help=secret)
    add("--queue", type=count, default=256, metavar="N", help="tasks that may be unfinished at a time (default: 256)")
    deadline = "how long requests may wait that name no deadline, from their arrival on (default: 600)"
    add("--deadline", type=amount, default=600.0, metavar="SECONDS", help=deadline)
    keep = "how long results are kept, and answer the same submission (default: 86400)"
    add("--keep", type=amount, default=86_400.0, metavar="SECONDS", help=keep)
    add("--max-body", type=amount, default=16.0, metavar="MB", help="largest request, in 10^6 bytes (default: 16)")
    disk = "what tasks and results may take on disk, in 10^9 bytes; the oldest results go first (default: 4)"
    add("--max-disk", type=amount, default=4.0, metavar="GB", help=disk)
    trust = "also take problems by source: clients then run code of theirs as this user, outside the sandbox"
    add("--allow-problem-source", action="store_true", help=trust)
    share = "evaluate also while other programs compute on the card; without it, the service waits for their end"
    add("--share-card", action="store_true", help=share)
    _executor(add)


def _profile(commands: Commands) -> None:
    about = "look into one call of a candidate by Nsight Compute or Compute Sanitizer"
    add = _command(commands, "profile", about, texts.PROFILE_ABOUT, texts.PROFILE_EXAMPLES).add_argument
    add("candidate", type=place, metavar="CANDIDATE.py", help="file of the candidate")
    add("--problem", default="", metavar="SET/NAME", help="the problem it solves (default: what its folders say)")
    add("--variant", default="default", metavar="NAME", help="size of the problem (default: default)")
    add("--device", default="auto", metavar="auto|cuda|cuda:N", help="the GPU (default: auto, the first)")
    add("--sanitizer", choices=("memcheck", "racecheck"), help="look for wrong accesses, or for races in shared memory")
    add("--no-verdict", action="store_true", help="do not evaluate the candidate before")
    add("--sandbox", choices=("auto", "require", "off"), help="as for run")
    layer = (
        "run the inspected call without this layer of the sandbox, if the tool does not work under it; may be repeated"
    )
    add("--without", action="append", default=[], metavar="LAYER", help=layer)
    add("--timeout", type=amount, default=900.0, metavar="SECONDS", help="time for the inspected call (default: 900)")
    add("--set", action="append", metavar="a.b=VALUE", help="set one config key; may be repeated")
    add("--out", type=place, metavar="DIR", help="folder for records and reports (default: below results/profile)")


def _import(commands: Commands) -> None:
    about = "turn other people's packs of candidates into a folder that can be run"
    add = _command(commands, "import", about, texts.IMPORT_ABOUT, texts.IMPORT_EXAMPLES).add_argument
    add("source", type=place, metavar="SOURCE", help="file or folder with candidates of others")
    add("--out", type=place, required=True, metavar="DIR", help="new or empty folder for what is imported")
    kernelbench = "a checkout of KernelBench, whose problems the candidates solve (default: the problems in the pack)"
    add("--kernelbench", type=place, metavar="DIR", help=kernelbench)
    add("--level", type=int, metavar="N", help="KernelBench's level, for whatever does not say it itself")
    add("--problem", default="", metavar="NAME", help="number or name of the problem, for whatever does not say it")
    blocks = "of a text with several blocks that define ModelNew, the last is a candidate, or each (default: last)"
    add("--blocks", default="last", choices=("last", "all"), help=blocks)
    for field, what in FIELDS.items():
        add(f"--{field}-field", default="", metavar="NAME", help=f"of a table: where a row has {what}")
    add("--require", choices=("all",), help="exit with 3 if anything was left")


FIELDS = {
    "code": "the candidate's code",
    "reference": "its problem's code",
    "problem": "the number or name of its problem",
    "level": "its problem's level",
    "name": "the candidate's name",
    "sample": "which of its problem's samples it is",
    "status": "whether it is right",
    "speedup": "its speedup",
    "time": "its time, in any unit",
    "baseline-time": "the time that its speedup is over, in the same unit",
}
