"""Look into one call of a candidate by NVIDIA's tools. Nothing of it is in a record, and no verdict knows of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.catalog.copies import Copies
from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device, make_device_nodes
from harness.errors import UsageError, nearest
from harness.instruments.insight import FOLDER, Insight
from harness.instruments.tools import Instrument
from harness.processes import folders, memory_watch
from harness.processes.nursery import Nursery
from harness.records import Outcome
from harness.sandbox import probe
from harness.sandbox.enforcement import LAYERS
from harness.store import run_directory
from harness.supervise import inspections, recording

SWITCHED_OFF = "switched off by --without"


def run(
    job: Job, device: Device, instrument: Instrument, config: Config, out: Path, without: list[str], timeout_s: float
) -> Insight:
    """Have `instrument` look into a call of the job's candidate, and keep what it tells below the run directory `out`.

    `without` are layers of the sandbox to leave out. Raises UsageError for one that there is not.
    """
    for layer in without:
        if layer not in LAYERS:
            raise UsageError(f"--without {layer}: {nearest(layer, LAYERS)}")
    on_a_card = device.kind == "cuda"
    found = probe.chosen(config.sandbox, on_a_card)
    layers = [layer for layer in found.layers if layer not in without]
    missing = found.missing | {layer: SWITCHED_OFF for layer in found.layers if layer in without}
    if on_a_card:
        make_device_nodes()
    name = f"{recording.file_name(job)}.{instrument.name}"
    place, log = out / FOLDER, out / "logs" / f"{name}.log"
    for folder in (place, log.parent):
        run_directory.make_folder(folder)
    report = place / f"{name}.ncu-rep"
    # Of the last time.
    report.unlink(missing_ok=True)
    scratch = folders.temporary("profile")
    private = {out.resolve(), job.candidate.path.resolve().parent}
    try:
        copies = Copies(scratch / "sources")
        with folders.open_to_others():
            nursery = Nursery(layers, private, memory_watch.share(), shown=copies.shown_bytes)
            try:
                told = inspections.inspect(
                    copies.job(job),
                    instrument,
                    nursery,
                    device,
                    log=log,
                    report=report,
                    timeout_s=timeout_s,
                    scratch=scratch,
                )
            finally:
                nursery.close()
    finally:
        folders.remove_at_end(scratch)
    common = Insight(candidate=job.title, instrument=instrument.name, log=str(log), missing=missing)
    if isinstance(told, Outcome):
        fault = copies.shown(f"{told.status} · {told.reason}: {told.message}")
        insight = msgspec.structs.replace(common, fault=fault)
    else:
        insight = msgspec.structs.replace(
            common,
            launches=told.launches,
            findings=told.findings,
            failed=copies.shown(told.failed),
            said=copies.shown(told.said),
            report=str(report) if told.report else "",
        )
    run_directory.replace(place / f"{name}.json", msgspec.json.format(msgspec.json.encode(insight)).decode())
    return insight
