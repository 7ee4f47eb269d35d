"""Which slot gets which job next, while builds are still going on."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

from harness.catalog.jobs import Job
from harness.supervise.builds import BuildResult, built_for

# With at least this many jobs left in another slot's group, opening the group once more is quicker: on an H200 opening
# takes twice as long as most candidates.
WORTH_SHARING = 4


BuildKey = tuple[Path, str, str]


def build_key(job: Job) -> BuildKey:
    """Jobs with the same key share a build."""
    return job.candidate.path, job.candidate.baseline, built_for(job)


class Schedule:
    """The jobs still to do, shared by the slots.

    To open a group (a problem at one size: judge, reference, hard inputs, baseline) takes a card longer than a
    candidate does. So a slot stays with its group, leaves another slot's group to that one, and begins with groups that
    are built already.
    """

    def __init__(
        self,
        jobs: list[Job],
        builds: dict[BuildKey, Future[BuildResult]],
        slots: int,
        *,
        all_builds_first: bool,
    ) -> None:
        self._waiting = list(jobs)
        self._slots = slots
        self._builds = builds
        # On the CPU, compilers would disturb a measurement. A job that is not measured gets its record at once.
        self._all_builds_first = all_builds_first
        self._lock = threading.Lock()
        self._groups: dict[str, tuple[str, str, str]] = {}

    def build_of(self, job: Job) -> BuildResult:
        return self._builds[build_key(job)].result()

    def builds_awaited(self) -> int:
        """How many builds have to end before anything is measured."""
        return sum(not future.done() for future in self._builds.values()) if self._all_builds_first else 0

    def _is_measured(self, job: Job) -> bool:
        """Whether a job whose build has ended will be measured."""
        build = self._builds[build_key(job)]
        return not job.problem.fault and build.exception() is None and build.result().fault is None

    def leave(self, slot: str) -> list[Job]:
        """Take one slot out of service; returns the jobs for which no slot is left."""
        with self._lock:
            self._slots -= 1
            self._groups.pop(slot, None)
            abandoned, self._waiting = (self._waiting, []) if self._slots == 0 else ([], self._waiting)
            return abandoned

    @property
    def empty(self) -> bool:
        """Whether no job is left to take."""
        return not self._waiting

    def take(self, slot: str) -> Job | None:
        """The next job for `slot` whose build has ended; None if there is none now."""
        with self._lock:
            ready = [job for job in self._waiting if self._builds[build_key(job)].done()]
            if self.builds_awaited():
                ready = [job for job in ready if not self._is_measured(job)]
            waiting = Counter(job.group for job in self._waiting)
            unbuilt = waiting - Counter(job.group for job in ready)
            own = self._groups.get(slot)
            others = {group for other, group in self._groups.items() if other != slot and group != own}
            ready = [job for job in ready if job.group not in others or waiting[job.group] >= WORTH_SHARING]
            if not ready:
                return None
            # The first of those that are best.
            job = min(ready, key=lambda job: (job.group != own, job.group in others, unbuilt[job.group] > 0))
            self._groups[slot] = job.group
            self._waiting.remove(job)
            return job
