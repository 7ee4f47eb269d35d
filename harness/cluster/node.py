"""What runs on each machine of a cluster: the same slots, builds and supervisors as in a run on that machine alone."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from pathlib import Path

import msgspec

from harness import records
from harness.catalog.jobs import Job
from harness.cluster.parcels import Files, Shelf
from harness.config import Config
from harness.execution.build_slots import how_many
from harness.execution.pool import Pool
from harness.execution.tasks import Task
from harness.execution.workplace import Site, site
from harness.processes import folders, memory_floor
from harness.records import Record
from harness.supervise import disk, lanes, recording

# The share of memory in use above which Ray ends a worker, as it comes; and how much sooner ours have to be ended.
RAYS_THRESHOLD = 0.95
REFRESH, THRESHOLD = "RAY_memory_monitor_refresh_ms", "RAY_memory_usage_threshold"
MARGIN = 0.05


class Node:
    """Evaluates jobs that come with their files, by a Pool over all devices that this process sees.

    `threads` is the OMP_NUM_THREADS of who asks: what a cluster sets for its workers would slow the reference. Methods
    are called from several threads.
    """

    def __init__(self, config: Config, threads: str | None) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads:
            os.environ["OMP_NUM_THREADS"] = threads
        if above := _above_rays_floor():
            os.environ.setdefault(memory_floor.VARIABLE, f"{above:.3f}")
        self._config = config
        found = site(config)
        self._site = msgspec.structs.replace(found, known=found.sandbox)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Record]] = {}
        self._folder: Path | None = None

    def site(self) -> Site:
        """This machine."""
        return self._site

    def open(self, config: Config, seed: int | None) -> tuple[int, int]:
        """Start processes; returns how many jobs are measured at a time, and how many can be prepared beside them."""
        self._folder = folders.temporary("node")
        self._shelf = Shelf(self._folder / "sources")
        self._logs = self._folder / "logs"
        devices = self._site.devices
        self._pool = Pool(devices, config, self._logs, seed, self._told, _unheard, private=[self._folder])
        return sum(lanes.how_many(config, device) for device in devices), 2 * how_many(config)

    def evaluate(self, job: Job, problem: Files, candidate: Files, priority: int) -> tuple[bytes, Files, bool]:
        """One job's record as JSON, the logs that it names, and whether a device is left here."""
        assert self._folder is not None
        disk.wait_for_room(self._folder)
        own = self._shelf.laid_out(job, problem, candidate)
        try:
            with self._lock:
                (task,) = self._pool.submit([own], priority)
                found = self._waiting[task.number] = Future()
            record = found.result()
            folder, told = str(own.problem.path.parent), str(job.problem.path.parent)
            mine, theirs = str(own.candidate.path.parent), str(job.candidate.path.parent)
            record = records.with_texts(record, lambda text: text.replace(folder, told).replace(mine, theirs))
            logs = self._taken_logs(job)
            logs = {name: text.replace(mine.encode(), theirs.encode()) for name, text in logs.items()}
        finally:
            self._shelf.release(own)
        return records.encode(record), logs, self._pool.alive

    def close(self) -> None:
        """End all processes, and remove what they have left."""
        if self._folder is not None:
            self._pool.close()
            folders.remove_at_end(self._folder)

    def _told(self, task: Task, end: Record | BaseException) -> None:
        with self._lock:
            found = self._waiting.pop(task.number)
        if isinstance(end, BaseException):
            found.set_exception(end)
        else:
            found.set_result(end)

    def _taken_logs(self, job: Job) -> Files:
        """What the job's processes printed; its files here are removed."""
        found = {}
        for name in recording.logs(job):
            place = self._logs / name
            if place.is_file():
                found[name] = place.read_bytes()
                place.unlink(missing_ok=True)
        return found


def _above_rays_floor() -> float:
    """The share of memory that has to stay free for Ray not to end this process for what a candidate has taken; 0 where
    Ray does not watch. Its watch has the environment that this process has."""
    if os.environ.get(REFRESH) == "0":
        return 0.0
    try:
        threshold = float(os.environ[THRESHOLD])
    except (KeyError, ValueError):
        threshold = RAYS_THRESHOLD
    return min(memory_floor.MOST, 1.0 - threshold + MARGIN)


def _unheard(slot: str, title: str, phase: str) -> None:
    """Phases are not sent: a session hears of them once a job begins and ends."""
