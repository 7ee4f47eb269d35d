"""Tasks, and in which order those of one group have their turn."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from pathlib import Path

from harness.catalog.jobs import Job
from harness.supervise.builds import built_for

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
    # By so many later ones, since it was the first of its group.
    overtaken: int = 0


class Line:
    """Tasks by priority, then as they came. What is done with one takes no longer where there are many."""

    def __init__(self) -> None:
        self._members: set[Task] = set()
        # With those that have left, or have another priority by now, until it is their turn.
        self._heap: list[tuple[int, int, Task]] = []

    def add(self, task: Task) -> None:
        self._members.add(task)
        self._push(task)

    def discard(self, task: Task) -> bool:
        """Take a task out; whether it was in it."""
        known = task in self._members
        self._members.discard(task)
        return known

    def hurried(self, task: Task) -> None:
        """A task has a larger priority than before."""
        if task in self._members:
            self._push(task)

    def first(self) -> Task | None:
        while self._heap:
            priority, _, task = self._heap[0]
            if task in self._members and task.priority == -priority:
                return task
            heapq.heappop(self._heap)
        return None

    def _push(self, task: Task) -> None:
        heapq.heappush(self._heap, (-task.priority, task.number, task))


@dataclass
class GroupTasks:
    """Tasks of one group that wait: how many, and of how many the build has not ended; those that can be measured, and
    those that only get a record."""

    waiting: int = 0
    unbuilt: int = 0
    measured: Line = field(default_factory=Line)
    told: Line = field(default_factory=Line)
