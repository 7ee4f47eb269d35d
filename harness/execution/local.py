"""Runs jobs on this machine: builds on CPU slots, then one evaluation slot per device."""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from harness.catalog.copies import Copies
from harness.catalog.jobs import Job, sources
from harness.config import Config
from harness.environment import Device, available_memory_bytes, cores, make_device_nodes, room_for_processes
from harness.execution.executor import ReportPhase
from harness.execution.schedule import BuildKey, Schedule, build_key
from harness.execution.turns import Turns
from harness.processes import folders, interruption, memory_watch
from harness.processes.nursery import NoProcess, NotStarted, Nursery
from harness.processes.renewal import RenewedNursery, Starter
from harness.records import Record, Status, with_texts
from harness.sandbox import probe
from harness.supervise import disk, losses, recording
from harness.supervise.builds import BuildResult, Workshop, built_again, lacked_the_device, needs_build
from harness.supervise.supervisor import Supervisor
from harness.wire import faults

POLL_S = 0.05
# A slot whose processes have ended takes so long at most, for its own folder.
SLOT_END_S = folders.END_S + 30.0
# Shown in place of a job for a slot that waits for all builds.
BESIDE = "waiting for builds before timing on the CPU"
SUSPECT = (Status.TIMEOUT, Status.CRASHED, Status.REJECTED, Status.HARNESS_ERROR)
# nvcc over torch's full headers takes 2 to 3 GB, and a build runs two compilers at a time.
BUILD_MEMORY_BYTES = 4 << 30
# Two compilers, their subprocesses and what starts them, and a pool of threads.
BUILD_PROCESSES = 64


class LocalExecutor:
    """One slot a device, side by side; `logs` takes the output of every process.

    After whatever may have broken a device, `device_fault` looks at it, and says what is wrong with one that is of no
    use any more: the run goes on without it.
    """

    def __init__(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int,
        device_fault: Callable[[Supervisor], str] = Supervisor.device_fault,
    ) -> None:
        self._devices = devices
        self._device_fault = device_fault
        self._config = config
        self._logs = logs
        self._seed = seed
        self._numbers = itertools.count()

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        if not jobs:
            return
        self._logs.mkdir(parents=True, exist_ok=True)
        with folders.open_to_others():
            yield from self._run(jobs, report_phase)

    def _run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        scratch = folders.temporary("build")
        copies = Copies(scratch / "sources")
        nursery: RenewedNursery | None = None
        builders = ThreadPoolExecutor(self._build_slots(), thread_name_prefix="build")
        done: queue.Queue[Record | BaseException] = queue.Queue()
        stop = threading.Event()
        slots: list[threading.Thread] = []
        try:
            nursery = RenewedNursery(lambda: self._nursery(jobs, copies))
            workshop = Workshop(self._devices[0], self._config)
            copied = [copies.job(job) for job in jobs]
            build = functools.partial(self._built, workshop, nursery, scratch, Turns())
            builds = self._start_builds(copied, builders, build, report_phase)
            schedule = Schedule(copied, builds, len(self._devices), all_builds_first=self._devices[0].kind == "cpu")
            for device in self._devices:
                arguments = (device, schedule, nursery, build, done, stop, report_phase)
                slots.append(threading.Thread(target=self._serve, args=arguments, name=device.spec, daemon=True))
                slots[-1].start()
            for _ in jobs:
                item = done.get()
                if isinstance(item, BaseException):
                    raise item
                yield with_texts(item, copies.shown)
        finally:
            with interruption.held():
                stop.set()
                builders.shutdown(wait=False, cancel_futures=True)
                if nursery:
                    nursery.close()
                folders.remove_at_end(scratch)
                # They remove folders, too.
                deadline = time.monotonic() + SLOT_END_S
                for slot in slots:
                    slot.join(max(deadline - time.monotonic(), 0.0))

    def _nursery(self, jobs: list[Job], copies: Copies) -> Nursery:
        """The forking parent; its untrusted children can read neither results nor the folders of the sources."""
        on_a_card = self._devices[0].kind == "cuda"
        if on_a_card:
            make_device_nodes()
        private = {self._logs.parent, *(source.parent for source in sources(jobs))}
        limit = self._config.limits.host_memory_gb * 1e9 or memory_watch.share()
        found = probe.chosen(self._config.sandbox, on_a_card)
        return Nursery(found.layers, private, int(limit), self._share_of_processes(), copies.shown_bytes)

    def _share_of_processes(self) -> int:
        """How many processes each untrusted one may have, so that all together leave room for ours; 0 for no bound."""
        room = room_for_processes()
        # A runner and a baseline's beside the builds; one share is ours.
        return 0 if room is None else max(1, room // (self._build_slots() + 2 * len(self._devices) + 1))

    def _build_slots(self) -> int:
        if self._config.build.slots:
            return self._config.build.slots
        room = room_for_processes()
        by_processes = cores() if room is None else room // 2 // (BUILD_PROCESSES + cores())
        return max(1, min(cores() // 2, available_memory_bytes() // BUILD_MEMORY_BYTES, by_processes))

    def _built(
        self,
        workshop: Workshop,
        nursery: Starter,
        scratch: Path,
        turns: Turns,
        job: Job,
        log: Path,
        card: Device | None = None,
    ) -> BuildResult:
        """One build; that its process cannot be started is a result, too."""

        def attempt() -> BuildResult:
            # Each has a folder of its own: what the last one left may still be there.
            return workshop.build(job, nursery, scratch / str(next(self._numbers)), log, card)

        try:
            result = self._with_room(lambda: built_again(attempt), turns, scratch)
            return msgspec.structs.replace(result, log=log.name if log.is_file() else "")
        except NotStarted as error:
            return BuildResult(fault=losses.not_started(error))
        except BlockingIOError as error:
            return BuildResult(fault=losses.not_started(NoProcess(str(error))))

    def _start_builds(
        self,
        jobs: list[Job],
        builders: ThreadPoolExecutor,
        build: Callable[[Job, Path], BuildResult],
        report_phase: ReportPhase,
    ) -> dict[BuildKey, Future[BuildResult]]:
        """One build per candidate file, or per variant where its constructor may compile; for all precisions."""
        builds: dict[BuildKey, Future[BuildResult]] = {}

        def carry_out(job: Job) -> BuildResult:
            # The pool numbers its threads from 0.
            slot = f"builder {threading.current_thread().name.rpartition('_')[2]}"
            report_phase(slot, job.title, "building")
            try:
                return build(job, self._logs / f"{recording.build_name(job)}.build.txt")
            finally:
                report_phase(slot, job.title, "")

        for job in jobs:
            if build_key(job) in builds:
                continue
            if needs_build(job) and not job.problem.fault and not job.candidate.fault:
                builds[build_key(job)] = builders.submit(carry_out, job)
            else:
                nothing: Future[BuildResult] = Future()
                nothing.set_result(BuildResult(fault=job.candidate.fault))
                builds[build_key(job)] = nothing
        return builds

    def _with_room(self, attempt: Callable[[], BuildResult], turns: Turns, scratch: Path) -> BuildResult:
        """`attempt()`, and once more without other builds beside it where the disk was full."""

        def tried() -> BuildResult:
            try:
                return attempt()
            except OSError as error:
                if error.errno not in disk.ERRORS:
                    raise
                return BuildResult(fault=disk.full(scratch, error))

        with turns.together():
            result = tried()
        if not disk.may_be_to_blame(result.fault, scratch):
            return result
        with turns.alone():
            result = tried()
        if not disk.may_be_to_blame(result.fault, scratch) or result.fault is None:
            return result
        # On a card, candidates run meanwhile.
        fault = disk.blamed(result.fault, scratch, alone=self._devices[0].kind == "cpu")
        return msgspec.structs.replace(result, fault=fault)

    def _serve(
        self,
        device: Device,
        schedule: Schedule,
        nursery: Starter,
        build_on: Callable[[Job, Path, Device], BuildResult],
        done: queue.Queue[Record | BaseException],
        stop: threading.Event,
        report_phase: ReportPhase,
    ) -> None:
        """One device's slot: take jobs until none is left."""

        def phase(job: Job, name: str) -> None:
            report_phase(device.spec, job.title, name)

        supervisor = Supervisor(nursery, device, self._config, self._logs, self._seed, phase)
        awaited = 0
        try:
            while not stop.is_set():
                job = schedule.take(device.spec)
                if job is None:
                    if schedule.empty:
                        return
                    before, awaited = awaited, schedule.builds_awaited()
                    if awaited and awaited != before:
                        report_phase(device.spec, BESIDE, f"waiting for {awaited} build{'s' * (awaited > 1)}")
                    time.sleep(POLL_S)
                    continue
                phase(job, "starting")
                build = schedule.build_of(job)
                record = supervisor.evaluate(job, build)
                if device.kind == "cuda" and lacked_the_device(job, build, record):
                    phase(job, "building")
                    build = build_on(job, self._logs / f"{recording.file_name(job)}.build.txt", device)
                    record = supervisor.evaluate(job, build)
                phase(job, "")
                fault = self._device_fault(supervisor) if _may_have_broken(record) else ""
                if fault:
                    note = f"device_lost: {device.spec} is out of service from now on: {fault}"
                    record = msgspec.structs.replace(record, warnings=[*record.warnings, note])
                if not stop.is_set():
                    done.put(record)
                if fault:
                    for left in schedule.leave(device.spec):
                        done.put(supervisor.unserved(left, f"no device is left; {device.spec}: {fault}"))
                    return
        except BaseException as error:
            if not stop.is_set():
                done.put(error)
        finally:
            supervisor.close()


def _may_have_broken(record: Record) -> bool:
    """Whether the device should be tested before the next candidate."""
    return record.status in SUSPECT or record.reason in faults.DEVICE_WORDS
