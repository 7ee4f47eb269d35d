"""The steps of a run: discover, build, evaluate, append, report. Read this first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from harness import environment, places, wording
from harness.catalog import jobs
from harness.catalog.claims import Claim, Claims
from harness.catalog.jobs import Job
from harness.config import Config, limits
from harness.environment import Device
from harness.execution import workplace as workplaces
from harness.execution.executor import Executor, ReportPhase
from harness.execution.workplace import Site, ThisMachine, Workplace
from harness.packs import named
from harness.reading.reading import Reader
from harness.records import SCHEMA_VERSION, Record, with_texts
from harness.reports import write
from harness.reports.terminal.progress import Planned, Progress
from harness.sandbox.probe import Found
from harness.store import cache_folder, journal, listed, run_directory
from harness.store.journal import Journal

MakeExecutor = Callable[[list[Device], Config, Path, int | None], Executor]


def run(
    config: Config,
    out: Path,
    console: Console,
    *,
    command: list[str],
    fresh: bool = False,
    make_executor: MakeExecutor | None = None,
    workplace: Workplace | None = None,
) -> list[Record]:
    """Carry out a config, write the run directory `out`, and return all its records, earlier ones included.

    Jobs that are finished in `out` are skipped, unless `fresh`. `workplace` is where to run, in place of this machine.
    Raises UsageError for errors that the user can fix.
    """
    run_directory.check_place(out)
    with Reader() as reader:
        # Before files are made or deleted, because this may raise.
        cache_folder.part(cache_folder.HEADERS, config.compile.cache_dir)
        site = (workplace or ThisMachine()).site(config)
        config, notes, left_out = named.resolved(config, reader)
        outline = jobs.outline(config, site.surroundings, reader)
    sandbox = None if os.path.lexists(out / run_directory.JOURNAL) else site.sandbox
    with Journal(out / run_directory.JOURNAL) as book:
        run_directory.make_folder(out / "logs")
        before = run_directory.manifest(out) if book.records and not fresh else {}
        finished = set() if fresh else book.finished(limits(config))
        if config.sandbox == "require":
            finished -= listed.unprotected(book.records, run_directory.parts(before))
        left = [cell for cell in outline.cells if cell.key not in finished]
        if left:
            sandbox = sandbox or site.sandbox
        waiting = _read(left, config, site)
        claims = Claims()
        claimed = {job.key: claims.about(job.candidate) for job in waiting}
        if fresh:
            book.clear()
        finished &= {cell.key for cell in outline.cells}
        brought_back = book.bring_back(finished)
        manifest = _manifest(config, site, command, run_directory.parts(before))
        earlier = before.get(listed.JOBS) or {}
        manifest[listed.JOBS] = {
            key: job for key, job in earlier.items() if not jobs.is_asked_for(job, outline, config)
        }
        manifest[listed.JOBS] |= _listed([cell for cell in outline.cells if cell.key in finished], waiting)
        manifest["left_out"] = _without_places([*left_out, *outline.left_out])
        _add_part(manifest, sandbox if waiting else None, len(book.records))

        def make() -> Executor:
            if make_executor:
                return make_executor(site.devices, config, out / "logs", config.seed)
            from harness.execution.local import LocalExecutor

            return LocalExecutor(site.devices, config, out / "logs", config.seed, workplace=workplace)

        # A call that finds nothing to do or to mend leaves the folder as it is.
        is_new = bool(waiting) or brought_back or _lasting(manifest) != _lasting(before) or not write.are_current(out)
        with Progress(console) as progress, _written(out, manifest, book, waiting) if is_new else nullcontext():
            for note in [*notes, *_without_lanes(config, site.devices), *outline.notes, *claims.notes]:
                progress.note(note)
            progress.start(map(_named, outline.cells), _of(finished, book))
            with closing(_evaluated(waiting, make, progress.phase)) as records:
                for record in records:
                    progress.finished(book.append(_with_claim(_portable(record), claimed.get(record.key))))
        return _of(finished | claimed.keys(), book)


def _without_lanes(config: Config, devices: list[Device]) -> list[str]:
    """What to say of lanes that no device has."""
    if config.lanes == 1 or any(device.kind != "cpu" for device in devices):
        return []
    return [f"lanes: {config.lanes} changes nothing here: the CPU has one lane, since whatever runs beside it is timed"]


@contextmanager
def _written(out: Path, manifest: dict[str, Any], book: Journal, waiting: list[Job]) -> Iterator[None]:
    """The manifest before the work, and with the reports after it, however it ends."""
    run_directory.write_manifest(out, manifest)
    try:
        yield
    finally:
        manifest["finished_at"] = _now()
        if waiting:
            manifest["parts"][-1]["finished_at"] = manifest["finished_at"]
        # If a record could not be written because the disk is full, these may fail, too; one message is enough.
        run_directory.write_manifest(out, manifest)
        write.write_all(out, listed.latest(book.records, manifest), manifest)


def _read(left: list[jobs.Cell], config: Config, site: Site) -> list[Job]:
    """The jobs of these cells, with their candidates' texts."""
    if not left:
        return []
    with Reader() as reader:
        return jobs.read(left, config, site.surroundings, reader)


def _evaluated(waiting: list[Job], make: Callable[[], Executor], report_phase: ReportPhase) -> Generator[Record]:
    """The records of these jobs. What carries them out is neither loaded nor made where there are none."""
    if waiting:
        yield from make().run(waiting, report_phase)


def plan(config: Config, devices: list[Device] | None = None) -> jobs.JobMatrix:
    """The jobs of a config on these devices, or by default on those that the config names."""
    surroundings = workplaces.surroundings(devices or environment.choose_devices(config.device), config)
    with Reader() as reader:
        config, notes, _ = named.resolved(config, reader)
        todo = jobs.plan(config, surroundings, reader)
    return msgspec.structs.replace(todo, notes=[*notes, *todo.notes])


def _listed(finished: list[jobs.Cell], waiting: list[Job]) -> dict[str, list[str]]:
    """The call's jobs for run.json: what has a record, and what is to get one."""
    known = {cell.key: [*_named(cell), cell.content] for cell in finished}
    for one in waiting:
        known[one.key] = [one.problem.id, one.variant, one.precision, one.candidate.name, one.candidate.digest]
    return known


def _named(cell: jobs.Cell) -> Planned:
    return cell.problem.id, cell.variant, cell.precision, cell.candidate.name


def _manifest(config: Config, site: Site, command: list[str], parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "command": _without_places(" ".join(command)),
        "config": _without_places(msgspec.to_builtins(config)),
        "environment": site.description,
        "started_at": _now(),
        "finished_at": None,
        "parts": parts,
    }


def _lasting(manifest: dict[str, Any]) -> dict[str, Any]:
    """What run.json says beside who called when, as JSON has it."""
    kept = {name: value for name, value in manifest.items() if name not in ("command", "started_at", "finished_at")}
    found: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return found


def _add_part(manifest: dict[str, Any], found: Found | None, line: int) -> None:
    """What may differ between the parts of a resumed run without changing its jobs' keys, for a new one if this call
    `found` a sandbox to work in; and the newest part's sandbox as the run's.

    The part's records begin after the first `line` lines of the journal.
    """
    if found:
        part = {
            "after_line": line,
            "commit": manifest["environment"]["commit"],
            "sandbox_mode": manifest["config"]["sandbox"],
            "sandbox": list(found.layers),
            "sandbox_missing": _without_places(found.missing),
            "started_at": manifest["started_at"],
            "finished_at": None,
        }
        manifest["parts"].append(part)
    for newest in manifest["parts"][-1:]:
        manifest["environment"] |= {name: newest.get(name) for name in ("sandbox", "sandbox_missing")}


def _of(keys: set[str], book: Journal) -> list[Record]:
    """The newest record of each of these jobs."""
    return [record for record in journal.latest(book.records) if record.key in keys]


def _portable(record: Record) -> Record:
    """The record without paths that show where this package or the user's home is, so that it can be published."""
    return with_texts(record, places.portable)


def _with_claim(record: Record, claim: Claim | None) -> Record:
    if claim is None:
        return record
    return msgspec.structs.replace(
        record, claimed_status=claim.status, claimed_speedup=claim.speedup, claimed_said=claim.said
    )


def _without_places(value: Any) -> Any:
    return wording.each_text(value, places.portable)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
