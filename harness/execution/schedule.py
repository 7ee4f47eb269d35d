"""Which slot gets which job next, while builds are still going on and more jobs may come."""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

from harness.catalog.jobs import Job
from harness.execution.tasks import BuildKey, GroupTasks, Line, Task, build_key
from harness.supervise.builds import BuildResult, is_built

# With at least this many jobs left in another slot's group, opening the group once more is quicker: on an H200 opening
# takes twice as long as most candidates. Where jobs of groups that nobody has open are to come, it is worth less.
WORTH_SHARING = 4
WORTH_MORE = 16
# A job that so many later ones have overtaken, for the sake of a group that is open, is the next while others come.
MOST_OVERTAKEN = 32


class BuildRoom(NamedTuple):
    """How many builds go on at once, and how much of the disk those that have ended may take until they are measured:
    beyond that, others wait."""

    at_once: int = sys.maxsize
    most_bytes: int = sys.maxsize


UNBOUNDED = BuildRoom()


class Schedule:
    """The tasks still to do, shared by the slots. Thread-safe.

    To open a group (a problem at one size: judge, reference, hard inputs, baseline) takes a card longer than a
    candidate does. So a slot stays with its group, leaves another slot's group to that one, all the more where others
    come, and begins with groups that are built already.

    On the CPU (`all_builds_first`), compilers would disturb a measurement. So tasks are done in rounds: all builds of a
    round, then its measurements. What comes meanwhile is of the next round; something more urgent than all that
    waits ends the round after the measurement under way. What is not measured is done at once.

    Where what was built has taken its `room`, what is ready is measured before others are built: on the CPU all of it.

    A turn takes as long as there are groups, however many tasks they have.
    """

    def __init__(
        self,
        start_build: Callable[[Job], Future[BuildResult]],
        slots: int,
        *,
        all_builds_first: bool,
        room: BuildRoom = UNBOUNDED,
    ) -> None:
        self._start_build = start_build
        self._room = room
        self._slots = slots
        self._all_builds_first = all_builds_first
        self._changed = threading.Condition()
        # Dictionaries for their order.
        self._arrived: dict[Task, None] = {}
        self._waiting: dict[Task, None] = {}
        # The same again, by how urgent they are.
        self._arrived_line, self._waiting_line = Line(), Line()
        self._taken: set[Task] = set()
        # The waiting ones again, by group; and those whose build goes on, by that.
        self._present: dict[tuple[str, ...], GroupTasks] = {}
        self._unbuilt: dict[BuildKey, dict[Task, None]] = {}
        self._builds: dict[BuildKey, Future[BuildResult]] = {}
        # How many tasks that have arrived, wait or were taken need a build.
        self._needs = Counter[BuildKey]()
        # Builds that have not ended yet, those that nobody needs any more among them.
        self._going: set[Future[BuildResult]] = set()
        # Builds that wait for room, and whether they do.
        self._queued: dict[BuildKey, Job] = {}
        self._full = False
        self._starting = False
        # What the libraries of those that have ended take, and of all of them.
        self._built_bytes: dict[BuildKey, int] = {}
        self._all_built_bytes = 0
        # How many of the waiting tasks can be measured.
        self._measurable = 0
        self._groups: dict[str, tuple[str, ...]] = {}
        self._closed = False

    def add(self, tasks: Iterable[Task]) -> bool:
        """Take in more tasks; False, and they are not, if no slot is left for them."""
        with self._changed:
            if not self._slots:
                return False
            for task in tasks:
                self._arrived[task] = None
                self._arrived_line.add(task)
                self._needs[build_key(task.job)] += 1
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
            if task in self._waiting:
                self._out_of_line(task)
            elif task in self._arrived:
                del self._arrived[task]
                self._arrived_line.discard(task)
            else:
                return False
            self._needs[build_key(task.job)] -= 1
            self._open_round()
            return True

    def has_begun(self, task: Task) -> bool:
        """Whether a task does not wait for its turn any more: its build goes on or has failed, or a slot has it."""
        with self._changed:
            if task in self._arrived:
                return False
            if task not in self._waiting:
                return True
            build = self._builds.get(build_key(task.job))
            if build is None:
                return False
            return build.running() or (build.done() and not self._is_measured(task))

    def hurry(self, task: Task, priority: int) -> None:
        """Give a task at least this priority."""
        with self._changed:
            if priority <= task.priority:
                return
            task.priority = priority
            self._arrived_line.hurried(task)
            self._waiting_line.hurried(task)
            if task in self._arrived:
                self._open_round()
            if task in self._waiting:
                group = self._present[task.job.group]
                group.measured.hurried(task)
                group.told.hurried(task)

    def ended(self, task: Task, end_build: Callable[[Job], None] = lambda job: None) -> None:
        """A task has been done, or withdrawn. `end_build`, which has to be quick, is called where its build is not
        needed any more, before the same candidate's next one can begin."""
        with self._changed:
            key = build_key(task.job)
            if task in self._taken:
                self._taken.remove(task)
                self._needs[key] -= 1
            if not self._needs[key]:
                del self._needs[key]
                self._queued.pop(key, None)
                self._all_built_bytes -= self._built_bytes.pop(key, 0)
                build = self._builds.pop(key, None)
                if build is not None:
                    build.cancel()
                end_build(task.job)
            self._open_round()

    def build_of(self, task: Task) -> BuildResult:
        return self._builds[build_key(task.job)].result()

    def builds_awaited(self) -> int:
        """How many builds have to end before anything is measured."""
        if not self._all_builds_first:
            return 0
        return len(self._going) + (0 if self._full else len(self._queued))

    def leave(self, slot: str) -> list[Task]:
        """Take one slot out of service; returns the tasks for which no slot is left."""
        with self._changed:
            self._slots -= 1
            self._groups.pop(slot, None)
            if self._slots:
                return []
            abandoned = [*self._waiting, *self._arrived]
            for task in abandoned:
                self._needs[build_key(task.job)] -= 1
            for tasks in (self._waiting, self._arrived, self._present, self._unbuilt, self._queued):
                tasks.clear()
            self._arrived_line, self._waiting_line = Line(), Line()
            self._measurable = 0
            return abandoned

    @property
    def alive(self) -> bool:
        """Whether a slot is left."""
        return self._slots > 0

    @property
    def done(self) -> bool:
        """Whether no task is left to take, and none will come."""
        return self._closed and not self._waiting and not self._arrived

    def take(self, slot: str, timeout_s: float = 0.0, later: frozenset[tuple[str, ...]] = frozenset()) -> Task | None:
        """The next task for `slot` whose build has ended, those of groups that are for `later` last; None if there is
        none within the time."""
        with self._changed:
            task = self._next(slot, later)
            if task is None and timeout_s and not self.done:
                self._changed.wait(timeout_s)
                task = self._next(slot, later)
            return task

    def put_off(self, slot: str, task: Task) -> None:
        """Take back what `slot` has taken and not done; its group is nobody's now."""
        with self._changed:
            self._taken.remove(task)
            self._groups.pop(slot, None)
            self._get_in_line(task)
            self._changed.notify_all()

    def _open_round(self) -> None:
        """Begin with the tasks that have arrived, unless those before them have to be done first."""
        under_way = self._taken or (self._waiting and not self._is_urgent())
        if self._arrived and not (self._all_builds_first and under_way):
            arrived, self._arrived, self._arrived_line = self._arrived, {}, Line()
            for task in arrived:
                self._get_in_line(task)
        self._start_builds()
        self._changed.notify_all()

    def _is_urgent(self) -> bool:
        """Whether something has arrived that is more urgent than all of the round."""
        arrived, waiting = self._arrived_line.first(), self._waiting_line.first()
        return arrived is not None and waiting is not None and arrived.priority > waiting.priority

    def _get_in_line(self, task: Task) -> None:
        self._waiting[task] = None
        self._waiting_line.add(task)
        key = build_key(task.job)
        group = self._present.setdefault(task.job.group, GroupTasks())
        group.waiting += 1
        group.unbuilt += 1
        self._unbuilt.setdefault(key, {})[task] = None
        if key in self._builds:
            if self._builds[key] not in self._going:
                self._ready(key)
        elif is_built(task.job):
            self._queued.setdefault(key, task.job)
        else:
            # That takes no time and no room.
            self._begin_build(key, task.job)

    def _start_builds(self) -> None:
        """Those for which there is room."""
        if self._starting:
            # One that has ended already: who has begun it goes on.
            return
        self._starting = True
        while self._queued and len(self._going) < self._room.at_once and self._has_room():
            key = next(iter(self._queued))
            self._begin_build(key, self._queued.pop(key))
        self._starting = False

    def _has_room(self) -> bool:
        over = self._all_built_bytes >= self._room.most_bytes
        # No compiler beside a measurement on the CPU, and few changes between the two.
        self._full = over or (self._full and self._all_builds_first)
        if self._full and not (self._measurable or self._taken):
            # Nothing else would ever make room.
            self._full = False
        return not self._full

    def _begin_build(self, key: BuildKey, job: Job) -> None:
        build = self._builds[key] = self._start_build(job)
        self._going.add(build)
        build.add_done_callback(functools.partial(self._built, key))

    def _out_of_line(self, task: Task) -> None:
        del self._waiting[task]
        self._waiting_line.discard(task)
        group = self._present[task.job.group]
        group.waiting -= 1
        if not group.waiting:
            del self._present[task.job.group]
        unbuilt = self._unbuilt.get(build_key(task.job), {})
        if task in unbuilt:
            del unbuilt[task]
            group.unbuilt -= 1
        self._measurable -= group.measured.discard(task)
        group.told.discard(task)

    def _built(self, key: BuildKey, build: Future[BuildResult]) -> None:
        with self._changed:
            self._going.discard(build)
            # Cancelled, it has no result, and nobody asks for it.
            if self._builds.get(key) is build and not build.cancelled():
                if build.exception() is None:
                    self._built_bytes[key] = build.result().size_bytes
                    self._all_built_bytes += self._built_bytes[key]
                self._ready(key)
            if not build.cancelled():
                self._start_builds()
            self._changed.notify_all()

    def _ready(self, key: BuildKey) -> None:
        """A build has ended: who waited for it can have a turn."""
        for task in self._unbuilt.pop(key, {}):
            group = self._present[task.job.group]
            group.unbuilt -= 1
            measured = self._is_measured(task)
            (group.measured if measured else group.told).add(task)
            self._measurable += measured

    def _is_measured(self, task: Task) -> bool:
        """Whether a task whose build has ended will be measured."""
        build = self._builds[build_key(task.job)]
        return not task.job.problem.fault and build.exception() is None and build.result().fault is None

    def _next(self, slot: str, later: frozenset[tuple[str, ...]]) -> Task | None:
        own = self._groups.get(slot)
        others = {group for other, group in self._groups.items() if other != slot and group != own}
        first = list(self._first_ones(others, later))
        if not first:
            return None

        def order(task: Task) -> tuple[int, bool, bool, bool, bool, bool, int]:
            group = task.job.group
            # Where its group is open, it is that slot's turn.
            late = self._starves(task) and group not in others
            unbuilt = self._present[group].unbuilt > 0
            return (-task.priority, not late, group in later, group != own, group in others, unbuilt, task.number)

        chosen = min(first, key=order)
        if chosen.job.group in later and not self._starves(chosen):
            # Other slots are not done with theirs.
            remain = (self._present[group].measured.first() for group in others - later if group in self._present)
            if any(task is not None and task.priority >= chosen.priority for task in remain):
                return None
        for task in first:
            task.overtaken += task.number < chosen.number
        if self._is_measured(chosen):
            self._groups[slot] = chosen.job.group
        self._out_of_line(chosen)
        self._taken.add(chosen)
        return chosen

    def _starves(self, task: Task) -> bool:
        """Whether others go before it again and again; where no more come, its turn will come."""
        return not self._closed and task.overtaken >= MOST_OVERTAKEN

    def _first_ones(self, others: set[tuple[str, ...]], later: frozenset[tuple[str, ...]]) -> Iterator[Task]:
        """The first ones of groups, of those that are measured and of the others, which open nothing; without groups of
        `others` that are left to these."""
        alone = all(group in others or group in later for group in self._present)
        fewest = WORTH_SHARING if alone else WORTH_MORE
        awaited = self.builds_awaited() or self._is_urgent()
        for name, group in self._present.items():
            left = name in others and group.waiting < fewest
            lines = (group.told,) if awaited or left else (group.told, group.measured)
            yield from (task for line in lines if (task := line.first()))
