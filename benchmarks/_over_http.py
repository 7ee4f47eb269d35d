"""The corpus as submissions to a service: each specimen's text, with its problem's name, over HTTP."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
from rich.console import Console

from benchmarks._service import Service
from harness.records import Record
from tests import specimens
from tests.specimens import Specimen

# More wait for a slot than there are, so that the service always has something to do.
CLIENTS = 8
DEADLINE_S = 80_000.0


def can_be_submitted(one: Specimen) -> bool:
    """Whether a specimen is a text, and nothing else."""
    try:
        text = one.path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    beside = [path for path in one.path.parent.glob(f"{one.name}.*") if path != one.path]
    return not beside and not one.path.is_symlink() and "\0" not in text


def run(chosen: Iterable[Specimen], folder: Path, console: Console, device: str) -> dict[str, Record]:
    """The records by name, as specimens.run; the services' folders lie below `folder`."""
    records: dict[str, Record] = {}
    for number, (group, config) in enumerate(specimens.configured(chosen, folder, device)):
        place = folder / f"service{number or ''}"
        place.mkdir()
        settings = msgspec.to_builtins(config)
        # Each request names its own.
        settings |= {"include": [], "variants": ["default"]}
        service = Service(place, queue=2 * CLIENTS, config=settings)
        service.start()
        try:
            with ThreadPoolExecutor(CLIENTS) as clients:
                found = clients.map(functools.partial(_submitted, service), group)
                for record in found:
                    console.print(f"{record.status:<17} {record.problem} {record.candidate}  {record.reason}")
                    records[record.candidate] = record
        finally:
            service.end(signal.SIGTERM)
    return records


def _submitted(service: Service, one: Specimen) -> Record:
    """The record of one specimen, however long it takes. Raises httpx.HTTPError where the service refuses it."""
    body = {"problem": one.problem, "candidate": one.path.read_text(), "variant": one.variant, "name": one.name}
    with service.client() as http:
        while (answer := http.post("/evaluate", json=body | {"deadline_s": DEADLINE_S})).status_code == 429:
            time.sleep(float(answer.headers["Retry-After"]))
        view = _json(answer)
        while view["status"] in ("pending", "running"):
            view = _json(http.get(f"/tasks/{view['task_id']}?wait=30"))
    if view["record"] is None:
        raise RuntimeError(f"{one.name}: {view['status']}, {view['error']}")
    return msgspec.convert(view["record"], Record)


def _json(answer: httpx.Response) -> dict:
    return answer.raise_for_status().json()
