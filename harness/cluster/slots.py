"""Which machine of a cluster gets which job, and what becomes of the jobs of one that is lost."""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from harness import wording
from harness.catalog.copies import Copies
from harness.catalog.jobs import Job
from harness.cluster.parcels import Files
from harness.config import Config
from harness.drafts import fresh
from harness.environment import Device
from harness.errors import AssayError
from harness.execution.executor import ReportPhase
from harness.execution.pool import LOOK_S, Tell
from harness.execution.schedule import Schedule
from harness.execution.tasks import Task
from harness.processes import folders, interruption
from harness.records import Outcome, Record, Status, with_texts
from harness.supervise import recording
from harness.supervise.builds import BuildResult

# A job is sent so often at most: one that takes a second machine with it may be the cause.
MOST_SENT = 2
# For threads that wait for a machine that has been ended.
END_S = 30.0
# What each machine may have ahead of what it measures, however little is left: one to build, one that is built.
LEAST_AHEAD = 2


class NodeLost(AssayError):
    """A machine does not answer any more; whether it was done with a job is not known."""


class Remote(Protocol):
    """One machine, as cluster.RemoteNode is: how many jobs it measures at a time, and how many it prepares beside."""

    name: str
    measures: int
    prepares: int

    def evaluate(self, job: Job, priority: int) -> tuple[Record, Files, bool]:
        """A job's record, its logs, and whether a device is left there. Raises NodeLost."""

    def end(self) -> None:
        """Have it do nothing any more."""


class ClusterSlots:
    """Jobs for several machines, as a Pool has them for this one's devices; logs come to the folder `logs`.

    What was sent to a machine stays there. So each gets half of its share of what is left, and the rest goes to those
    that are done sooner (guided self-scheduling: Polychronopoulos and Kuck, 1987). The jobs of a machine that is lost,
    or that has no device left, are done once more by another.
    """

    def __init__(
        self,
        nodes: Sequence[Remote],
        device: Device,
        config: Config,
        logs: Path,
        tell: Tell,
        report_phase: ReportPhase,
    ) -> None:
        self._machines = len(nodes)
        self._device = device
        self._config = config
        self._logs = logs
        self._tell = tell
        self._report_phase = report_phase
        self._lock = threading.Lock()
        self._lost: set[str] = set()
        self._sent = Counter[Task]()
        self._unfinished = 0
        self._no_more = False
        self._stop = threading.Event()
        logs.mkdir(parents=True, exist_ok=True)
        self._scratch = folders.temporary("cluster")
        self._copies = Copies(self._scratch / "sources")
        self._schedule = Schedule(_nothing_to_build, len(nodes), all_builds_first=False)
        self._threads = [
            threading.Thread(target=self._serve, args=(node, place), daemon=True)
            for node in nodes
            for place in range(1, node.measures + node.prepares + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether a machine is left."""
        return self._schedule.alive

    def submit(self, jobs: Iterable[Job], priority: int = 0) -> list[Task]:
        """Have jobs carried out, as Pool.submit."""
        tasks = [Task(job=job, priority=priority) for job in self._copies.jobs(jobs)]
        with self._lock:
            self._unfinished += len(tasks)
        if not self._schedule.add(tasks):
            for task in tasks:
                self._give_up(task, "no machine of the cluster is left")
        return tasks

    def has_begun(self, task: Task) -> bool:
        """Whether a task was sent to a machine that is not lost."""
        return self._schedule.has_begun(task)

    def hurry(self, task: Task, priority: int) -> None:
        """Give a task that waits at least this priority."""
        self._schedule.hurry(task, priority)

    def withdraw(self, task: Task) -> bool:
        """Take back a task; False if it was sent to a machine."""
        withdrawn = self._schedule.withdraw(task)
        if withdrawn:
            self._forget(task)
        return withdrawn

    def no_more(self) -> None:
        """Have threads end when all is done."""
        self._no_more = True

    def close(self) -> None:
        """Send nothing any more; who has made the machines ends them."""
        with interruption.held():
            self._stop.set()
            self._schedule.close()
            folders.remove_at_end(self._scratch)

    def _serve(self, node: Remote, place: int) -> None:
        """Send one job after the other, as the `place`th of those that the machine has at a time."""
        slot = f"{node.name}, job {place}"
        while not (self._stop.is_set() or node.name in self._lost or (self._no_more and not self._unfinished)):
            if place > self._most_at(node):
                self._stop.wait(LOOK_S)
                continue
            task = self._schedule.take(node.name, LOOK_S)
            if task is not None:
                self._report_phase(slot, task.job.title, "starting")
                try:
                    self._carry_out(task, node)
                except BaseException as error:
                    if task not in self._sent:
                        raise
                    # Whoever asked for it waits for an end.
                    self._give_up(task, f"what {node.name} sent could not be kept: {error!r}", "unrecorded")
                self._report_phase(slot, task.job.title, "")

    def _most_at(self, node: Remote) -> int:
        """How many jobs a machine may have by what is left."""
        share = self._unfinished / max(1, self._machines - len(self._lost))
        return math.ceil(min(share, max(share / 2, node.measures + LEAST_AHEAD)))

    def _carry_out(self, task: Task, node: Remote) -> None:
        self._sent[task] += 1
        try:
            record, logs, alive = node.evaluate(task.job, task.priority)
        except NodeLost as error:
            if not self._stop.is_set():
                self._leave(node, str(error))
                self._again(task, str(error))
            return
        except BaseException as error:
            self._finish(task, error)
            return
        if not alive:
            self._leave(node, f"{node.name} has no device left")
            if record.status is Status.HARNESS_ERROR:
                self._again(task, record.message)
                return
        self._write(logs)
        self._finish(task, with_texts(record, self._copies.shown))

    def _leave(self, node: Remote, why: str) -> None:
        """Send a machine nothing any more."""
        with self._lock:
            if node.name in self._lost:
                return
            self._lost.add(node.name)
        node.end()
        for task in self._schedule.leave(node.name):
            self._give_up(task, why)

    def _again(self, task: Task, why: str) -> None:
        """Have another machine do what was sent to one that is lost."""
        self._schedule.ended(task)
        if self._sent[task] >= MOST_SENT:
            self._give_up(task, f"{why}, and another machine before it")
        elif not self._schedule.add([task]):
            self._give_up(task, why)

    def _give_up(self, task: Task, why: str, reason: str = "node_lost") -> None:
        lost = Outcome(status=Status.HARNESS_ERROR, reason=reason, message=why)
        self._finish(task, recording.without_result(task.job, self._device, self._config, lost))

    def _finish(self, task: Task, end: Record | BaseException) -> None:
        with self._lock:
            self._sent.pop(task, None)
        if not self._stop.is_set():
            self._tell(task, end)
        self._forget(task)

    def _forget(self, task: Task) -> None:
        self._schedule.ended(task)
        self._copies.release(task.job)
        with self._lock:
            self._sent.pop(task, None)
            self._unfinished -= 1

    def _write(self, logs: Files) -> None:
        """A log that cannot be written costs nothing else."""
        for name, text in logs.items():
            # The name comes from another machine.
            place = self._logs / Path(name).name
            try:
                with fresh(place) as file:
                    file.write(self._copies.shown_bytes(text))
            except (OSError, ValueError) as error:
                print(f"the log {wording.plain(str(place), 300)} cannot be written: {error}", file=sys.stderr)


def _nothing_to_build(job: Job) -> Future[BuildResult]:
    """Each machine builds what it evaluates."""
    done: Future[BuildResult] = Future()
    done.set_result(BuildResult())
    return done
