"""Build slots: candidates compiled side by side, each by an untrusted process; libraries go with their last job."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device, available_memory_bytes, cores, room_for_processes
from harness.execution.executor import ReportPhase
from harness.execution.tasks import BuildKey, build_key
from harness.machine.turns import Turns
from harness.processes.nursery import Child, NoProcess, NotStarted
from harness.processes.renewal import Starter
from harness.supervise import disk, losses, recording
from harness.supervise.builds import BuildResult, Workshop, built_again, is_built, unparsed
from harness.wire import faults

# nvcc over torch's full headers takes 2 to 3 GB, and a build runs two compilers at a time.
BUILD_MEMORY_BYTES = 4 << 30
# Two compilers, their subprocesses and what starts them, and a pool of threads.
BUILD_PROCESSES = 64


def how_many(config: Config) -> int:
    """Build slots: what the config says, or else what cores, free memory and the control group allow."""
    if config.build.slots:
        return config.build.slots
    room = room_for_processes()
    by_processes = cores() if room is None else room // 2 // (BUILD_PROCESSES + cores())
    return max(1, min(cores() // 2, available_memory_bytes() // BUILD_MEMORY_BYTES, by_processes))


class _Withdrawn(NotStarted):
    """Nobody waits for what was to be started."""

    reason = "withdrawn"


class _Build:
    """What one build starts processes by, however often it is tried; once stopped, it has none and starts none."""

    def __init__(self, nursery: Starter) -> None:
        self.folders: list[Path] = []
        self._nursery = nursery
        self._child: Child | None = None
        self.stopped = False
        self._lock = threading.Lock()

    def begin(self, folder: Path) -> None:
        """Another try, in a folder of its own. Raises NotStarted once it is stopped."""
        with self._lock:
            if self.stopped:
                raise _Withdrawn("nobody waits for it any more")
            self.folders.append(folder)

    def start(self, *args: Any, **kwargs: Any) -> Child:
        """As Nursery.start."""
        child = self._nursery.start(*args, **kwargs)
        with self._lock:
            self._child = child
            if self.stopped:
                child.stop()
        return child

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._child is not None:
                self._child.stop()


class BuildSlots:
    """Builds below `scratch` by processes of `nursery`, for one kind of device; each build's output goes to `logs`."""

    def __init__(
        self, device: Device, config: Config, nursery: Starter, scratch: Path, logs: Path, report_phase: ReportPhase
    ) -> None:
        self._device = device
        self._nursery = nursery
        self._scratch = scratch
        self._logs = logs
        self._report_phase = report_phase
        self._workshop = Workshop(device, config)
        self._turns = Turns()
        self._numbers = itertools.count()
        self._builds: dict[BuildKey, list[_Build]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._threads = ThreadPoolExecutor(how_many(config), thread_name_prefix="build")

    def close(self) -> None:
        """Begin no more builds; those under way end with the nursery."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def start(self, job: Job) -> Future[BuildResult]:
        """The build of one candidate file, or of one variant of it where its constructor may compile."""
        nothing: Future[BuildResult] = Future()
        if not is_built(job):
            nothing.set_result(BuildResult(fault=job.candidate.fault or unparsed(job)))
            return nothing
        try:
            return self._threads.submit(self._in_a_slot, job, self._begun(job))
        except RuntimeError:
            # It is closed.
            nothing.cancel()
            return nothing

    def build(self, job: Job, log: Path, card: Device | None = None) -> BuildResult:
        """One build; that its process cannot be started is a result, too. It may use `card`, if one is given."""
        return self._built(job, self._begun(job), log, card)

    def _begun(self, job: Job) -> _Build:
        one = _Build(self._nursery)
        with self._lock:
            self._builds.setdefault(build_key(job), []).append(one)
        return one

    def _built(self, job: Job, one: _Build, log: Path, card: Device | None = None) -> BuildResult:
        def attempt() -> BuildResult:
            # Each has a folder of its own: what the last one left may still be there.
            folder = self._scratch / str(next(self._numbers))
            one.begin(folder)
            return self._workshop.build(job, one, folder, log, card)

        try:
            result = self._with_room(lambda: built_again(attempt))
            return msgspec.structs.replace(result, log=log.name if log.is_file() else "")
        except NotStarted as error:
            return BuildResult(fault=losses.not_started(error))
        except BlockingIOError as error:
            return BuildResult(fault=losses.not_started(NoProcess(str(error))))
        finally:
            if one.stopped:
                # Nobody reads it.
                log.unlink(missing_ok=True)

    def end(self, job: Job) -> list[Path]:
        """End what still builds for a job, and for no other; the folders of what was built, which are to be removed."""
        with self._lock:
            left = self._builds.pop(build_key(job), [])
        for one in left:
            one.stop()
        return [folder for one in left for folder in one.folders]

    def _in_a_slot(self, job: Job, one: _Build) -> BuildResult:
        # The pool numbers its threads from 0.
        slot = f"builder {threading.current_thread().name.rpartition('_')[2]}"
        self._report_phase(slot, job.title, "building")
        try:
            return self._built(job, one, self._logs / f"{recording.build_name(job)}.build.txt")
        finally:
            self._report_phase(slot, job.title, "")

    def _with_room(self, attempt: Callable[[], BuildResult]) -> BuildResult:
        """`attempt()`, and once more without other builds beside it where the disk was full, or memory ran out."""

        def tried() -> BuildResult:
            disk.wait_for_room(self._scratch, lambda: self._closed)
            try:
                return attempt()
            except OSError as error:
                if error.errno not in disk.ERRORS:
                    raise
                return BuildResult(fault=disk.full(self._scratch, error))

        with self._turns.together():
            result = tried()
        if faults.is_short_of_memory(result.fault):
            # Other builds beside it had some, too.
            with self._turns.alone():
                result = tried()
        if not disk.may_be_to_blame(result.fault, self._scratch):
            return result
        disk.wait_for_room(self._scratch, lambda: self._closed)
        # On a card, candidates run also beside the second attempt.
        others = self._device.kind == "cuda" and disk.is_full(self._scratch)
        with self._turns.alone():
            result = tried()
        if not disk.may_be_to_blame(result.fault, self._scratch) or result.fault is None:
            return result
        disk.wait_for_room(self._scratch, lambda: self._closed)
        fault = disk.blamed(result.fault, self._scratch, others=others)
        return msgspec.structs.replace(result, fault=fault)
