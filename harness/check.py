"""The steps of a check: find candidates, read each, compile each in an untrusted process, report."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from harness import config, environment, wording
from harness.catalog import contract, solutions
from harness.catalog import problems as catalog
from harness.catalog.copies import Copies
from harness.catalog.facts import Diagnostic
from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate
from harness.compile import architectures, prepare, toolkit
from harness.compile.tools import Tools, find_tools
from harness.compile.ways.certain import first_error_line
from harness.errors import UsageError
from harness.processes import folders, memory_watch
from harness.processes.nursery import NotStarted, Nursery
from harness.reading.reading import Reader
from harness.records import Outcome, Status, unrecorded
from harness.reports.terminal.check_table import CheckRow
from harness.sandbox import probe
from harness.store import cache_folder, run_directory
from harness.supervise import losses
from harness.supervise.builds import needs_compiler
from harness.supervise.checks import CheckResult, check
from harness.wire.messages import Built

DEFAULT_ARCHITECTURE = "9.0a"
# Shown at most of what an untrusted process reports.
MOST_FAILURES = 20


def run(
    patterns: list[str],
    *,
    problems: list[str],
    architecture: str | None,
    logs: Path,
    timeout_s: float,
    at_once: int,
    started: Callable[[str], None],
    note: Callable[[str], None] = lambda text: None,
) -> Generator[CheckRow, None, None]:
    """Check each candidate under `patterns`, `at_once` at a time, in their order. The compilers' output goes to `logs`.

    `started` is called for each candidate as it begins, `note` for each file that is skipped. Raises UsageError for a
    pattern that matches nothing, and where there is no candidate.
    """
    with Reader() as reader:
        found = [solutions.read(place, reader) for place in solutions.discover(patterns, note)]
        if not found:
            raise UsageError(f"no candidate found in {', '.join(patterns)}")
        known = {problem.id: problem for problem in catalog.discover(problems, reader, note)} if problems else {}
        solved = {one.path: known.get(one.problem) or _beside(one, reader) for one in found}
    target = config.architecture(architecture, "--arch") if architecture else _of_the_card()
    cuda = toolkit.find()
    tools = find_tools(cuda, target)
    run_directory.make_folder(logs)
    private = {logs, *(candidate.path.parent for candidate in found)}
    scratch = folders.temporary("check")
    copies = Copies(scratch / "sources")
    with folders.open_to_others():
        nursery = Nursery(probe.chosen("auto").layers, private, memory_watch.share(), shown=copies.shown_bytes)

    def carry_out(candidate: Candidate) -> CheckRow:
        started(f"{candidate.problem} {candidate.name}")
        problem = solved[candidate.path]
        log = logs / f"{wording.name(f'{candidate.problem}.{candidate.name}'.replace('/', '.'), 220)}.log"
        copy, reference = copied[candidate.path]
        if copy.fault:
            return _row(candidate, problem, None, log, copy.fault)
        if tools is None and candidate.facts.needs_build:
            return _row(candidate, problem, None, log, needs_compiler())
        try:
            result = check(
                copy,
                reference,
                nursery,
                toolkit=cuda,
                architecture=target,
                prepared=_prepared(candidate, tools),
                log=log,
                timeout_s=timeout_s,
                scratch=scratch,
            )
        except NotStarted as error:
            return _row(candidate, problem, None, log, losses.not_started(error))
        try:
            row = _row(candidate, problem, result, log)
            return msgspec.convert(wording.each_text(msgspec.to_builtins(row), copies.shown), CheckRow)
        except Exception as error:
            # A mistake of ours, which costs this candidate its row, and not the others theirs.
            return _row(candidate, problem, None, log, unrecorded(error))

    pool = ThreadPoolExecutor(at_once)
    try:
        copied = {one.path: (copies.candidate(one), _copy(solved[one.path], copies)) for one in found}
        with folders.open_to_others():
            yield from pool.map(carry_out, found)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        nursery.close()
        folders.remove_at_end(scratch)


def _copy(problem: Problem | None, copies: Copies) -> Problem | None:
    """What a candidate's constructor is tried with; none where that cannot be had."""
    copy = copies.problem(problem) if problem and not problem.fault else None
    return copy if isinstance(copy, Problem) else None


def _prepared(candidate: Candidate, tools: Tools | None) -> str:
    """The folder of precompiled headers for a candidate; empty if none could be made, which only costs time."""
    try:
        if tools is None or not candidate.facts.needs_build:
            return ""
        folder = prepare.prepared(candidate.facts.headers, cache_folder.part(cache_folder.HEADERS), tools)
    except (RuntimeError, OSError):
        return ""
    return str(folder)


def _of_the_card() -> str:
    devices = environment.gpus()[0]
    if not devices:
        return DEFAULT_ARCHITECTURE
    return architectures.of_card(devices[0].capability)


def _beside(candidate: Candidate, reader: Reader) -> Problem | None:
    """The problem that a candidate's path names: problems/<set>/<name>.py of the nearest folder above that has it."""
    path = catalog.above(candidate.path, candidate.problem)
    return None if path is None else catalog.read(path, reader)


def _row(
    candidate: Candidate, problem: Problem | None, result: CheckResult | None, log: Path, fault: Outcome | None = None
) -> CheckRow:
    remarks = contract.remarks(candidate, problem)
    answer = result.answer if result else None
    built = answer.built if answer else None
    if result and result.fault:
        fault = result.fault
    elif isinstance(built, Built) and built.unconstructed:
        message = f"its constructor raised {built.unconstructed}; what it compiles after that was not compiled"
        fault = Outcome(status=Status.UNSUPPORTED, reason="not_constructed", message=message)
    return CheckRow(
        candidate=f"{candidate.problem}/{candidate.name}",
        file=candidate.path.name,
        problem=problem.id if problem else "",
        fault=fault,
        errors=_errors(fault, answer.hint if answer else "") if fault else [],
        remarks=remarks,
        findings=candidate.facts.findings,
        extensions=len(built.libraries) if isinstance(built, Built) else 0,
        failures=[first_error_line(text) for text in list(built.failures.values())[:MOST_FAILURES]]
        if isinstance(built, Built)
        else [],
        kernels=answer.kernels if answer else [],
        absent=dict(list(answer.absent.items())[:MOST_FAILURES]) if answer else {},
        wall_s=result.wall_s if result else 0.0,
        log=str(log),
    )


def _errors(fault: Outcome, hint: str = "") -> list[Diagnostic]:
    """What to show of a fault: the compiler's first errors, or its one message."""
    evidence = fault.evidence
    try:
        # An untrusted process wrote them.
        found = msgspec.convert(evidence.get("errors", []), list[Diagnostic])
    except msgspec.ValidationError:
        found = []
    if fault.status is not Status.COMPILE_ERROR or not found:
        return [Diagnostic(text=fault.message, hint=hint)]
    return found[:MOST_FAILURES]
