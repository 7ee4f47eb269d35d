"""The command line: each command calls one function."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import resource
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import options
from harness.errors import UsageError, nearest
from harness.processes import interruption

if TYPE_CHECKING:
    from harness.config import Config

QUICKSTART = "configs/quickstart.yaml"
# What the system says about a path that it does not let us use.
REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the harness failed, 2 wrong usage, 3 a gate failed, and 128
    with the number of the signal that ended it."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Descriptors in transit count against their user's limit. A candidate may send many that nobody receives, so this
    # process, which may have the same user, takes the largest limit that it can get.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with interruption.heard():
        return _exit_code(words)


def _exit_code(words: list[str]) -> int:
    try:
        arguments = options.parser().parse_args(words or ["run", QUICKSTART])
        if arguments.command is None:
            raise UsageError(f"choose a command: {', '.join(COMMANDS)}; see {options.program()} --help")
        return COMMANDS[arguments.command](arguments, words)
    except UsageError as error:
        print(f"error: {_said(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        # The terminal may be gone.
        with contextlib.suppress(OSError):
            print("Interrupted. Finished results are saved; run the same command to resume.", file=sys.stderr)
        return interruption.exit_code(interrupt)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
        if error.errno in REFUSALS and where and _is_given(os.fsdecode(error.filename), words):
            print(f"error: {_said(error.strerror)}{_said(where)}", file=sys.stderr)
            return 2
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"error: {_said(error.strerror)}{_said(where)}. Finished results are saved. Free some disk space",
            file=sys.stderr,
        )
        return 2


def _is_given(place: str, words: list[str]) -> bool:
    """Whether a path is one of the command's words, or lies below one or above; any other is our own choice."""
    given = {os.path.abspath(part) for word in words for part in (word, word.partition("=")[2]) if part}
    return any(os.path.commonpath([os.path.abspath(place), one]) in (os.path.abspath(place), one) for one in given)


def _said(words: object) -> str:
    """Text as one printable line; it may quote paths and other text from outside."""
    from harness import wording

    return wording.plain(str(words), 2000, kept="")


def _quoted(path: Path) -> str:
    """A path as a word of a command to be copied into a shell."""
    return _said(shlex.quote(str(path)))


def _run(arguments: argparse.Namespace, words: list[str]) -> int:
    import msgspec
    from rich.console import Console

    from harness import config as configs
    from harness import places, session
    from harness.records import Status
    from harness.reports import agreement, terminal
    from harness.store import run_directory

    if arguments.require and arguments.require not in list(Status):
        raise UsageError(f"--require {arguments.require}: {nearest(arguments.require, list(Status))}")
    is_candidate = arguments.config.suffix == ".py"
    if arguments.problem and not is_candidate:
        raise UsageError(
            f"--problem goes with a candidate's file in place of a config: {options.program()} run mine.py"
        )
    config = configs.load(Path(QUICKSTART) if is_candidate else arguments.config, arguments.set)
    if (place := places.found(arguments.config)) != arguments.config:
        print(f"note: {_said(arguments.config)} is not in this folder; using {_said(place)}", file=sys.stderr)
    replaced = _of_one_candidate(place, arguments.problem) if is_candidate else {}
    replaced |= {
        name: value
        for name, value in {
            "problems": arguments.problems,
            "solutions": arguments.solutions,
            "variants": arguments.variant,
            "device": arguments.device,
            "seed": arguments.seed,
            "sandbox": arguments.sandbox,
        }.items()
        if value is not None
    }
    config = msgspec.structs.replace(config, **replaced)
    if arguments.dry_run:
        return _list_jobs(config)
    out = arguments.out or Path(config.out or configs.default_out(arguments.config))
    console = Console()
    records = session.run(config, out, console, command=[options.program(), *words], fresh=arguments.fresh)
    console.print()
    manifest, _ = run_directory.read(out)
    terminal.leaderboard(records, console, manifest, every=arguments.all)
    if any(map(agreement.claimed, records)):
        more = f"{options.program()} report {_quoted(out)} --claims"
        console.print(f"\nEach claim that we disagree with: {more}", highlight=False, soft_wrap=True, markup=False)
    console.print(
        f"\nResults in {_said(out)}: records.jsonl, results.csv, leaderboard.md, report.html, logs/",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    if arguments.require and any(record.status != arguments.require for record in records):
        return 3
    failed = [record for record in records if record.status is Status.HARNESS_ERROR]
    if failed:
        which = f"{len(failed)} of {len(records)} jobs have no verdict, because the harness failed: {failed[0].message}"
        print(f"error: {_said(which)}. The same command tries them again", file=sys.stderr)
    return 1 if failed else 0


def _of_one_candidate(path: Path, problem: str) -> dict[str, Any]:
    """What a config says that selects one candidate: of the problem that is named, or else of that of its folders."""
    from harness import places
    from harness.catalog import problems

    told = "/".join(places.real(path).parent.parts[-2:])
    try:
        found = problems.by_name(problem) if problem else problems.above(path, told) or problems.by_name(told)
    except UsageError as error:
        if problem:
            raise
        advice = "name it: --problem attention/sdpa"
        raise UsageError(f"which problem {_said(path)} solves, its folders do not tell; {advice}") from error
    solved = f"{places.real(found).parent.name}/{found.stem}"
    return {"problems": [str(found)], "solutions": [str(path)], "variants": ["default"], "solves": solved}


def _new(arguments: argparse.Namespace, words: list[str]) -> int:
    from harness.catalog import starting_points

    write = {"problem": starting_points.problem, "solution": starting_points.solution}[arguments.kind]
    path = write(arguments.name, arguments.root)
    print(f"wrote {_said(path)}")
    program = options.program()
    steps = {
        "problem": [
            f"audit {_quoted(path)} --variant small",
            f"new solution {arguments.name.removesuffix('.py')}/mine",
        ],
        "solution": [f"run {_quoted(path)} --variant small"],
    }
    for step in steps[arguments.kind]:
        print(_said(f"next: {program} {step}"))
    return 0


def _list_jobs(config: Config) -> int:
    from harness import session
    from harness.reports import text

    plan = session.plan(config)
    for note in plan.notes:
        print(f"note: {text.clean(note)}", file=sys.stderr)
    for job in plan.jobs:
        print(job.title)
    print(f"{len(plan.jobs)} jobs", file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console
    from rich.markup import escape

    from harness import check, environment
    from harness.reports import check_table, text

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
            started=lambda title: status.update(escape(f"checking {title}")),
            note=lambda words: print(f"note: {text.clean(words)}", file=sys.stderr),
        )
        for row in found:
            rows.append(row)
            check_table.show(row, console)
    console.print(check_table.summary(rows))
    accepted = ("ok",) if arguments.require else ("ok", "unsure")
    return 0 if all(row.verdict in accepted for row in rows) else 3


def _audit(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console
    from rich.markup import escape

    from harness import audit
    from harness.reports import audit_table, text

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
            started=lambda title: status.update(escape(f"auditing {title}")),
        )
        for row in found:
            rows.append(row)
            if not console.is_terminal:
                said = text.clean(f"{row.problem} {row.variant}: {audit_table.line(row)}")
                console.print(f"{row.verdict:<8} {said}", soft_wrap=True, markup=False, highlight=False)
    if arguments.format == "markdown":
        print(audit_table.page(rows), end="")
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
    if arguments.claims:
        from harness.reports import agreement

        print("\n".join(agreement.lines(records)))
    elif arguments.samples:
        from harness.reports import samples

        print(samples.to_csv(records), end="")
    elif arguments.format == "terminal":
        from rich.console import Console

        from harness.reports import terminal

        terminal.leaderboard(records, Console(), manifest, every=arguments.all)
    elif arguments.format == "csv":
        from harness.reports import rows

        print(rows.to_csv(records), end="")
    elif arguments.format == "html":
        from harness.reports.html import page

        print(page.report(records, manifest, arguments.run_dir), end="")
    elif arguments.format == "junit":
        from harness.reports import junit

        print(junit.xml(records), end="")
    else:
        from harness.reports import markdown

        print(markdown.leaderboard(records, manifest), end="")
    return 0


def _doctor(arguments: argparse.Namespace, words: list[str]) -> int:
    import msgspec
    from rich.console import Console

    from harness import doctor
    from harness.reports import doctor_table

    findings = doctor.examine()
    if arguments.json:
        print(msgspec.json.encode({"conclusion": doctor.conclusion(findings), "found": findings}).decode())
    else:
        doctor_table.show(findings, doctor.conclusion(findings), Console())
    return 1 if any(finding.vital and not finding.ok for finding in findings) else 0


def _compare(arguments: argparse.Namespace, words: list[str]) -> int:
    from rich.console import Console

    from harness.reports import compare, compare_table
    from harness.store import run_directory

    (manifest_a, a), (manifest_b, b) = run_directory.read(arguments.run_a), run_directory.read(arguments.run_b)
    rows = compare.rows(a, b)
    failing = compare.failing(rows, [word.strip() for part in arguments.fail_on for word in part.split(",")])
    notes = compare.notes(rows, manifest_a, manifest_b)
    heads = [("A", arguments.run_a, manifest_a), ("B", arguments.run_b, manifest_b)]
    if arguments.format == "html":
        from harness.reports.html import comparison

        print(comparison.report(rows, notes, heads), end="")
    else:
        console = Console()
        for head in heads:
            console.print(compare_table.head(*head), soft_wrap=True)
        compare_table.comparison(rows, notes, console)
    if failing:
        print(f"--fail-on: {compare.listed(failing)}", file=sys.stderr)
    return 3 if failing else 0


def _completion(arguments: argparse.Namespace, words: list[str]) -> int:
    print(options.completion(arguments.shell))
    return 0


def _import(arguments: argparse.Namespace, words: list[str]) -> int:
    from harness.packs import importing
    from harness.packs.sample import Wishes
    from harness.reading.reading import Reader
    from harness.reports import imported

    fields = [f"{name.replace('-', '_')}_field" for name in options.FIELDS]
    wishes = Wishes(
        level=arguments.level,
        problem=arguments.problem,
        every_block=arguments.blocks == "all",
        **{name: getattr(arguments, name) for name in fields},
    )
    with Reader() as reader:
        manifest = importing.run(arguments.source, arguments.out, wishes, arguments.kernelbench, reader)
    for line in imported.lines(manifest, f"{options.program()} run {_quoted(importing.config(arguments.out))}"):
        print(line)
    return 3 if arguments.require and manifest.left else 0


def _serve(arguments: argparse.Namespace, words: list[str]) -> int:
    import msgspec

    from harness import config as configs

    try:
        from harness.serve import command
        from harness.serve.service import Settings
    except ModuleNotFoundError as error:
        raise UsageError(f"serve needs {error.name}: pip install 'kernel-assay[serve]'") from error
    for name in ("queue", "deadline", "keep", "max_body"):
        if not 0 < getattr(arguments, name) <= configs.MOST:
            raise UsageError(f"--{name.replace('_', '-')} must be above 0")
    config = configs.load(arguments.config, arguments.set)
    replaced = {"problems": arguments.problems, "device": arguments.device}
    config = msgspec.structs.replace(config, **{name: value for name, value in replaced.items() if value is not None})
    settings = Settings(
        queue=arguments.queue,
        deadline_s=arguments.deadline,
        keep_s=arguments.keep,
        allow_problem_source=arguments.allow_problem_source,
    )
    token = command.token(arguments.token_file)
    print(f"listening on http://{_said(arguments.host)}:{arguments.port}, tasks in {_said(arguments.dir)}", flush=True)
    command.run(
        config,
        arguments.dir,
        settings,
        host=arguments.host,
        port=arguments.port,
        token=token,
        most_body_mb=arguments.max_body,
    )
    return 0


COMMANDS = {
    "run": _run,
    "new": _new,
    "check": _check,
    "audit": _audit,
    "report": _report,
    "compare": _compare,
    "import": _import,
    "serve": _serve,
    "doctor": _doctor,
    "completion": _completion,
}
