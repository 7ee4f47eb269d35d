"""Evaluate what a config says, or one candidate."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness import config as configs
from harness import places, session
from harness.commands import elsewhere
from harness.commands.saying import quoted, said
from harness.commands.single import of_one_candidate
from harness.config import Config
from harness.errors import UsageError, nearest
from harness.options import options
from harness.records import Record, Status
from harness.reports import agreement, text
from harness.reports.terminal import leaderboard
from harness.reports.terminal.consoles import Terminal
from harness.store import run_directory


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    if arguments.require and arguments.require not in list(Status):
        raise UsageError(f"--require {arguments.require}: {nearest(arguments.require, list(Status))}")
    is_candidate = arguments.config.suffix == ".py"
    if arguments.problem and not is_candidate:
        raise UsageError(f"--problem goes with a candidate's file in place of a config: {options.typed()} run mine.py")
    if os.path.isdir(place := places.found(arguments.config)):
        raise UsageError(
            f"{said(arguments.config)} is a folder; to evaluate the candidates in it: {options.typed()} run "
            f"{options.QUICKSTART} --solutions {quoted(arguments.config)} --problems PROBLEMS --variant default"
        )
    config = configs.load(Path(options.QUICKSTART) if is_candidate else arguments.config, arguments.set)
    if place != arguments.config:
        print(f"note: {said(arguments.config)} is not in this folder; using {said(place)}", file=sys.stderr)
    replaced = of_one_candidate(place, arguments.problem, arguments.problems or ()) if is_candidate else {}
    for problem in replaced.get("problems", []):
        if not places.real(Path(problem)).is_relative_to(places.real(places.LIBRARY / "problems")):
            print(f"note: the problem, which the judge runs, is {said(problem)}", file=sys.stderr)
    replaced |= {
        name: value
        for name, value in {
            "problems": None if is_candidate else arguments.problems,
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
    own = f"{config.solves}/{place.stem}" if is_candidate else ""
    out = arguments.out or Path(config.out or configs.default_out(arguments.config, own))
    console = Terminal()
    called = [options.program(), *words]
    with elsewhere.workplace(arguments.executor, arguments.address) as workplace:
        records = session.run(config, out, console, command=called, fresh=arguments.fresh, workplace=workplace)
    console.print()
    leaderboard.show(records, console, run_directory.manifest(out), every=arguments.all)
    if any(map(agreement.claimed, records)):
        more = f"{options.typed()} report {quoted(out)} --claims"
        console.print(f"\nEach claim that we disagree with: {more}", highlight=False, soft_wrap=True, markup=False)
    console.print(
        f"\nResults in {said(out)}: records.jsonl, results.csv, leaderboard.md, report.html, logs/",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    if arguments.require and not _is_met(arguments.require, records, run_directory.manifest(out)):
        return 3
    failed = [record for record in records if record.status is Status.HARNESS_ERROR]
    if failed:
        which = f"{len(failed)} of {len(records)} jobs have no verdict, because the harness failed: {failed[0].message}"
        print(f"error: {said(which)}. The same command tries them again", file=sys.stderr)
    return 1 if failed else 0


def _is_met(required: str, records: Sequence[Record], manifest: Mapping[str, Any]) -> bool:
    """Whether all records have this status, and nothing that was asked for was left out."""
    for line in manifest.get("left_out", []):
        print(f"--require {required}: {said(line)}", file=sys.stderr)
    return not manifest.get("left_out") and all(record.status == required for record in records)


def _list_jobs(config: Config) -> int:
    plan = session.plan(config)
    for note in plan.notes:
        print(f"note: {text.clean(note)}", file=sys.stderr)
    for job in plan.jobs:
        print(job.title)
    print(f"{len(plan.jobs)} {'job' if len(plan.jobs) == 1 else 'jobs'}", file=sys.stderr)
    return 0
