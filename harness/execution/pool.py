"""This machine's build slots and devices, which carry out jobs as they come, until closed."""

from __future__ import annotations

import contextlib
import functools
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.catalog.copies import Copies
from harness.catalog.jobs import Job, sources
from harness.config import Config
from harness.environment import Device, make_device_nodes, room_for_processes
from harness.execution.build_slots import BuildSlots, how_many
from harness.execution.executor import ReportPhase
from harness.execution.schedule import BuildRoom, Schedule
from harness.execution.tasks import Task
from harness.processes import folders, interruption, memory_watch
from harness.processes.nursery import Nursery
from harness.processes.renewal import RenewedNursery
from harness.records import Record, Status, with_texts
from harness.sandbox import probe
from harness.supervise import lanes, recording
from harness.supervise.builds import lacked_the_device
from harness.supervise.lanes import Lanes
from harness.supervise.supervisor import Supervisor
from harness.wire import faults

# A slot without work looks around so often; what changes wakes it before that.
LOOK_S = 0.25
# A slot whose processes have ended takes so long at most, for its own folder.
SLOT_END_S = folders.END_S + 30.0
# Shown in place of a job for a slot that waits for all builds.
BESIDE = "waiting for builds before timing on the CPU"
# Likewise, for one whose device takes no more for now.
HELD, WHY_HELD = "no evaluation begins", "others use the device"
SUSPECT = (Status.TIMEOUT, Status.CRASHED, Status.REJECTED, Status.HARNESS_ERROR)

# Of what is free where builds lie at first, what those may take together that are not measured yet: builds under way
# and the candidate that is measured need room, too.
BUILT_SHARE = 0.25

Tell = Callable[[Task, Record | BaseException], None]
"""Called once for each task that was not withdrawn, by a slot's thread: with its record, or with an error of ours."""


@dataclass(frozen=True)
class Slot:
    """One of the lanes of a device; `name` is told to people."""

    name: str
    device: Device
    lanes: Lanes


class Pool:
    """The lanes of each device, side by side, and build slots for all; `logs` takes the output of every process.

    Source files lie in the folders `private`, or in others that are closed to candidates when the first job comes from
    there. Without a `seed`, inputs are new whenever a problem is opened. After whatever may have broken a device,
    `device_fault` looks at it, and says what is wrong with one that is of no use any more: the others go on without it.
    No evaluation begins on a device while `admits` says no; builds go on.
    """

    def __init__(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int | None,
        tell: Tell,
        report_phase: ReportPhase,
        device_fault: Callable[[Supervisor], str] = Supervisor.device_fault,
        private: Iterable[Path] = (),
        admits: Callable[[Device], bool] = lambda device: True,
    ) -> None:
        self._devices = devices
        self._config = config
        self._logs = logs
        self._seed = seed
        self._tell = tell
        self._report_phase = report_phase
        self._device_fault = device_fault
        self._admits = admits
        self._private = {logs.parent.resolve(), *(folder.resolve() for folder in private)}
        self._stop = threading.Event()
        # What becomes of a job when no device is left.
        self._lost: Callable[[Job], Record | BaseException] | None = None
        self._threads: list[threading.Thread] = []
        self._kept = contextlib.ExitStack()
        self._kept.enter_context(folders.open_to_others())
        slots = [slot for device in devices for slot in _slots(device, config)]
        self._slots = len(slots)
        for slot in slots:
            self._kept.callback(slot.lanes.close)
        logs.mkdir(parents=True, exist_ok=True)
        self._scratch = folders.temporary("build")
        self._copies = Copies(self._scratch / "sources")
        try:
            self._nursery = RenewedNursery(self._make_nursery)
            self._kept.callback(self._nursery.close)
            self._builds = BuildSlots(devices[0], config, self._nursery, self._scratch, logs, report_phase)
        except BaseException:
            self._put_away()
            raise
        on_cpu = devices[0].kind == "cpu"
        room = BuildRoom(how_many(config), int(shutil.disk_usage(self._scratch).free * BUILT_SHARE))
        self._schedule = Schedule(self._builds.start, self._slots, all_builds_first=on_cpu, room=room)
        for slot in slots:
            self._threads.append(threading.Thread(target=self._serve, args=(slot,), name=slot.name, daemon=True))
            self._threads[-1].start()

    def submit(self, jobs: Iterable[Job], priority: int = 0) -> list[Task]:
        """Have jobs carried out, those of higher priority first; each ends with one call of `tell`.

        Their files are copied before this returns.
        """
        todo = list(jobs)
        self._hide({path.parent.resolve() for path in sources(todo)})
        tasks = [Task(job=job, priority=priority) for job in self._copies.jobs(todo)]
        if not self._schedule.add(tasks):
            for task in tasks:
                self._give_up(task)
        return tasks

    def has_begun(self, task: Task) -> bool:
        """Whether a task is being built or evaluated, and does not wait for its turn."""
        return self._schedule.has_begun(task)

    def hurry(self, task: Task, priority: int) -> None:
        """Give a task that waits at least this priority."""
        self._schedule.hurry(task, priority)

    @property
    def alive(self) -> bool:
        """Whether a device is left."""
        return self._schedule.alive

    def withdraw(self, task: Task) -> bool:
        """Take back a task; False if it is being evaluated, or has been."""
        withdrawn = self._schedule.withdraw(task)
        if withdrawn:
            # What its build has left may take long to remove.
            threading.Thread(target=self._forget, args=(task,), name="forget", daemon=True).start()
        return withdrawn

    def no_more(self) -> None:
        """Have slots end when they have done what there is."""
        self._schedule.close()

    def close(self) -> None:
        """End everything that was started; nobody is told of tasks that are not done."""
        with interruption.held():
            self._stop.set()
            self._schedule.close()
            self._builds.close()
            self._put_away()
            # They remove folders, too.
            deadline = time.monotonic() + SLOT_END_S
            for thread in self._threads:
                thread.join(max(deadline - time.monotonic(), 0.0))

    def _put_away(self) -> None:
        self._kept.close()
        folders.remove_at_end(self._scratch)

    def _hide(self, folders_of_sources: set[Path]) -> None:
        new = {place for place in folders_of_sources if not any(place.is_relative_to(known) for known in self._private)}
        if new:
            self._private |= new
            self._nursery.hide(new)

    def _make_nursery(self) -> Nursery:
        """The forking parent; its untrusted children can read neither results nor the folders of the sources."""
        on_a_card = self._devices[0].kind == "cuda"
        if on_a_card:
            make_device_nodes()
        limit = self._config.limits.host_memory_gb * 1e9 or memory_watch.share()
        found = probe.chosen(self._config.sandbox, on_a_card)
        processes = share_of_processes(self._config, self._slots)
        return Nursery(found.layers, self._private, int(limit), processes, self._copies.shown_bytes)

    def _serve(self, slot: Slot) -> None:
        """Take tasks until none is left; what an error of ours has left is replaced."""
        try:
            while self._work(slot):
                pass
        except BaseException as error:
            self._leave(slot, lambda job, error=error: error)  # type: ignore[misc]

    def _work(self, slot: Slot) -> bool:
        """Evaluate task after task by one supervisor; whether another one should go on."""

        def phase(job: Job, name: str) -> None:
            self._report_phase(slot.name, job.title, name)

        supervisor = Supervisor(self._nursery, slot.device, self._config, self._logs, self._seed, phase, slot.lanes)
        try:
            for task in self._taken(slot, supervisor):
                try:
                    record, fault = self._evaluated(task, slot, supervisor, phase)
                except BaseException as error:
                    self._finish(task, error)
                    return True
                if record is None:
                    self._schedule.put_off(slot.name, task)
                    continue
                self._finish(task, record)
                if fault:
                    unserved = functools.partial(
                        supervisor.unserved, why=f"no device is left; {slot.device.spec}: {fault}"
                    )
                    self._leave(slot, unserved)
                    return False
            return False
        finally:
            supervisor.close()

    def _taken(self, slot: Slot, supervisor: Supervisor) -> Iterator[Task]:
        """Task after task for a supervisor, which rests where there is none for now."""
        told = 0
        while not (self._stop.is_set() or self._schedule.done):
            self._wait_for_admission(slot)
            task = self._schedule.take(slot.name, later=supervisor.later)
            if task is None:
                supervisor.rest()
                awaited = self._schedule.builds_awaited()
                if awaited and awaited != told:
                    self._report_phase(slot.name, BESIDE, f"waiting for {awaited} build{'s' * (awaited > 1)}")
                told = awaited
                task = self._schedule.take(slot.name, LOOK_S, supervisor.later)
            if task is not None:
                yield task

    def _wait_for_admission(self, slot: Slot) -> None:
        held = False
        while not (self._stop.is_set() or self._schedule.done or self._admits(slot.device)):
            if not held:
                self._report_phase(slot.name, HELD, WHY_HELD)
            held = True
            self._stop.wait(LOOK_S)
        if held:
            self._report_phase(slot.name, HELD, "")

    def _evaluated(
        self, task: Task, slot: Slot, supervisor: Supervisor, phase: Callable[[Job, str], None]
    ) -> tuple[Record | None, str]:
        """A task's record, None if it is put off, and what is wrong with the device since, if it is."""
        job = task.job
        phase(job, "starting")
        build = self._schedule.build_of(task)
        record = supervisor.evaluate(job, build)
        if record is not None and slot.device.kind == "cuda" and lacked_the_device(job, build, record):
            phase(job, "building")
            build = self._builds.build(job, self._logs / f"{recording.file_name(job)}.build.txt", slot.device)
            record = supervisor.evaluate(job, build)
        phase(job, "")
        if record is None:
            return None, ""
        fault = self._device_fault(supervisor) if _may_have_broken(record) else ""
        if fault:
            note = f"device_lost: {slot.device.spec} is out of service from now on: {fault}"
            record = msgspec.structs.replace(record, warnings=[*record.warnings, note])
        return record, fault

    def _leave(self, slot: Slot, lost: Callable[[Job], Record | BaseException]) -> None:
        self._lost = lost
        for task in self._schedule.leave(slot.name):
            self._give_up(task)

    def _give_up(self, task: Task) -> None:
        if self._lost:
            self._finish(task, self._lost(task.job))

    def _finish(self, task: Task, end: Record | BaseException) -> None:
        told = end if isinstance(end, BaseException) else with_texts(end, self._copies.shown)
        self._forget(task)
        if not self._stop.is_set():
            self._tell(task, told)

    def _forget(self, task: Task) -> None:
        """Remove the copy of a candidate, and what was built of it, after its last task."""
        built: list[Path] = []
        self._schedule.ended(task, lambda job: built.extend(self._builds.end(job)))
        for folder in built:
            folders.remove(folder)
        self._copies.release(task.job)


def _slots(device: Device, config: Config) -> list[Slot]:
    count = lanes.how_many(config, device)
    shared = Lanes(count)
    names = [device.spec] if count == 1 else [f"{device.spec} lane {number}" for number in range(1, count + 1)]
    return [Slot(name, device, shared) for name in names]


def share_of_processes(config: Config, slots: int) -> int:
    """How many processes each untrusted one may have, so that all together leave room for ours; 0 for no bound."""
    room = room_for_processes()
    # A runner and a baseline's beside the builds; one share is ours.
    return 0 if room is None else max(1, room // (how_many(config) + 2 * slots + 1))


def _may_have_broken(record: Record) -> bool:
    """Whether the device should be tested before the next candidate."""
    return record.status in SUSPECT or record.reason in faults.DEVICE_WORDS
