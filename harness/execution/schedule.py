"""Which slot gets which job next, while builds are still going on and more jobs may come."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from harness.catalog.jobs import Job
from harness.supervise.builds import BuildResult, built_for

# With at least this many jobs left in another slot's group, opening the group once more is quicker: on an H200 opening
# takes twice as long as most candidates. Where jobs of groups that nobody has open are to come, it is worth less.
WORTH_SHARING = 4
WORTH_MORE = 16
# A job that so many later ones have overtaken, for the sake of a group that is open, is the next.
MOST_OVERTAKEN = 32


BuildKey = tuple[Path, str, str]


def build_key(job: Job) -> BuildKey:
    """Jobs with the same key share a build."""
    return job.candidate.path, job.candidate.baseline, built_for(job)


@dataclass(eq=False)
class Task:
    """A job to be carried out once; of two that are ready, the one with the larger `priority` is first."""

    job: Job
    priority: int = 0
    number: int = field(default_factory=itertools.count().__next__)
    overtaken: int = 0


class Schedule:
    """The tasks still to do, shared by the slots. Thread-safe.

    To open a group (a problem at one size: judge, reference, hard inputs, baseline) takes a card longer than a
    candidate does. So a slot stays with its group, leaves another slot's group to that one, all the more where others
    come, and begins with groups that are built already.

    On the CPU (`all_builds_first`), compilers would disturb a measurement. So tasks are done in rounds: all builds of a
    round, then its measurements. What comes meanwhile is of the next round. What is not measured is done at once.
    """

    def __init__(
        self, start_build: Callable[[Job], Future[BuildResult]], slots: int, *, all_builds_first: bool
    ) -> None:
        self._start_build = start_build
        self._slots = slots
        self._all_builds_first = all_builds_first
        self._changed = threading.Condition()
        self._arrived: list[Task] = []
        self._waiting: list[Task] = []
        self._taken: list[Task] = []
        self._builds: dict[BuildKey, Future[BuildResult]] = {}
        # Builds that nobody needs any more and that have not ended yet.
        self._ending: set[Future[BuildResult]] = set()
        self._groups: dict[str, tuple[str, ...]] = {}
        self._closed = False

    def add(self, tasks: Iterable[Task]) -> bool:
        """Take in more tasks; False, and they are not, if no slot is left for them."""
        with self._changed:
            if not self._slots:
                return False
            self._arrived += tasks
            self._open_round()
            return True

    def close(self) -> None:
        """No more tasks will come; slots are told that they are done when none is left."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def withdraw(self, task: Task) -> bool:
        """Take back a task; False if a slot has it already, or has done it."""
        with self._changed:
            for tasks in (self._arrived, self._waiting):
                if task in tasks:
                    tasks.remove(task)
                    self._open_round()
                    return True
            return False

    def has_begun(self, task: Task) -> bool:
        """Whether a task does not wait for its turn any more: its build goes on or has failed, or a slot has it."""
        with self._changed:
            if task in self._arrived:
                return False
            if task not in self._waiting:
                return True
            build = self._builds[build_key(task.job)]
            return build.running() or (build.done() and not self._is_measured(task))

    def hurry(self, task: Task, priority: int) -> None:
        """Give a task at least this priority."""
        with self._changed:
            task.priority = max(task.priority, priority)

    def ended(self, task: Task, end_build: Callable[[Job], None] = lambda job: None) -> None:
        """A task has been done, or withdrawn. `end_build`, which has to be quick, is called where its build is not
        needed any more, before the same candidate's next one can begin."""
        with self._changed:
            if task in self._taken:
                self._taken.remove(task)
            key = build_key(task.job)
            if not self._needed(key):
                build = self._builds.pop(key, None)
                if build is not None and not (build.done() or build.cancel()):
                    self._ending.add(build)
                end_build(task.job)
            self._open_round()

    def build_of(self, task: Task) -> BuildResult:
        return self._builds[build_key(task.job)].result()

    def builds_awaited(self) -> int:
        """How many builds have to end before anything is measured."""
        if not self._all_builds_first:
            return 0
        with self._changed:
            return sum(not build.done() for build in (*self._builds.values(), *self._ending))

    def leave(self, slot: str) -> list[Task]:
        """Take one slot out of service; returns the tasks for which no slot is left."""
        with self._changed:
            self._slots -= 1
            self._groups.pop(slot, None)
            if self._slots:
                return []
            abandoned = [*self._waiting, *self._arrived]
            self._waiting, self._arrived = [], []
            return abandoned

    @property
    def alive(self) -> bool:
        """Whether a slot is left."""
        return self._slots > 0

    @property
    def done(self) -> bool:
        """Whether no task is left to take, and none will come."""
        return self._closed and not self._waiting and not self._arrived

    def take(self, slot: str, timeout_s: float = 0.0) -> Task | None:
        """The next task for `slot` whose build has ended; None if there is none within the time."""
        with self._changed:
            task = self._next(slot)
            if task is None and timeout_s and not self.done:
                self._changed.wait(timeout_s)
                task = self._next(slot)
            return task

    def _open_round(self) -> None:
        """Begin with the tasks that have arrived, unless those before them have to be done first."""
        if self._arrived and not (self._all_builds_first and (self._waiting or self._taken)):
            self._waiting += self._arrived
            self._arrived = []
            for task in self._waiting:
                if build_key(task.job) not in self._builds:
                    key = build_key(task.job)
                    self._builds[key] = self._start_build(task.job)
                    self._builds[key].add_done_callback(self._built)
        self._changed.notify_all()

    def _built(self, build: Future[BuildResult]) -> None:
        with self._changed:
            self._ending.discard(build)
            self._changed.notify_all()

    def _needed(self, key: BuildKey) -> bool:
        return any(build_key(one.job) == key for one in (*self._taken, *self._waiting, *self._arrived))

    def _is_measured(self, task: Task) -> bool:
        """Whether a task whose build has ended will be measured."""
        build = self._builds[build_key(task.job)]
        return not task.job.problem.fault and build.exception() is None and build.result().fault is None

    def _next(self, slot: str) -> Task | None:
        ready = [task for task in self._waiting if self._builds[build_key(task.job)].done()]
        if self.builds_awaited():
            ready = [task for task in ready if not self._is_measured(task)]
        waiting = Counter(task.job.group for task in self._waiting)
        unbuilt = waiting - Counter(task.job.group for task in ready)
        own = self._groups.get(slot)
        others = {group for other, group in self._groups.items() if other != slot and group != own}
        fewest = WORTH_MORE if waiting.keys() - others else WORTH_SHARING
        ready = [
            task
            for task in ready
            if task.job.group not in others
            or waiting[task.job.group] >= fewest
            # Opens nothing.
            or not self._is_measured(task)
        ]
        if not ready:
            return None

        def order(task: Task) -> tuple[int, bool, bool, bool, bool]:
            group = task.job.group
            # Where its group is open, it is that slot's turn.
            late = task.overtaken >= MOST_OVERTAKEN and group not in others
            return (-task.priority, not late, group != own, group in others, unbuilt[group] > 0)

        # The first of those that are best.
        chosen = min(ready, key=order)
        for task in ready:
            task.overtaken += task.number < chosen.number
        if self._is_measured(chosen):
            self._groups[slot] = chosen.job.group
        self._waiting.remove(chosen)
        self._taken.append(chosen)
        return chosen
