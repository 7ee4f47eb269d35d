"""Evaluations by the call: one candidate after the other, or many at a time, by processes that stay warm.

The same way as a run's: catalog.jobs plans a job, an execution.pool carries it out.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from harness import config as configs
from harness import places, records
from harness.catalog.jobs import Job
from harness.config import Config
from harness.errors import UsageError
from harness.evaluator.deadlines import Deadlines
from harness.evaluator.lines import Lines
from harness.evaluator.planning import Planner, Source, Submission, is_text
from harness.execution.tasks import Task
from harness.execution.workplace import ThisMachine, Workplace
from harness.processes import folders
from harness.records import Record, Status
from harness.supervise import disk, recording

# How soon a submission whose deadline passed while it was evaluated is looked at again.
LOOK_AGAIN_S = 1.0
# After this share of its time, a submission that still waits has a priority above its own.
HURRY_AT = 0.5


@dataclass(eq=False)
class _Entry:
    """A job that is not done, and all that wait for it: the same file, submitted again meanwhile, is the same job."""

    job: Job
    waiting: list[Submission]
    name: str
    task: Task | None = None
    begun: bool = False


class Evaluator:
    """Evaluates candidates on one or several devices; a context manager. Thread-safe.

    `config` (a Config, a path, or None for all defaults) says how: its matrix (problems, solutions, variants, include,
    ...) counts for nothing here. `devices` names several, like ["cuda:0", "cuda:2"], in place of the config's. `logs`
    is a folder that keeps what processes print, which is removed otherwise. `report_phase` is called as an Executor
    calls it. `workplace` is where to evaluate, in place of this machine: a cluster.cluster.Cluster.

    While one is open, this process's umask is 022. Leaving the `with` block waits for what was submitted, unless an
    exception leaves it. Problems are trusted code; candidates are not (docs/threat-model.md). Raises UsageError where
    the config or the machine does not allow to evaluate.
    """

    def __init__(
        self,
        config: Config | str | Path | None = None,
        *,
        devices: Sequence[str] = (),
        logs: str | Path | None = None,
        report_phase: Callable[[str, str, str], None] = lambda slot, title, phase: None,
        workplace: Workplace | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else configs.load(Path(config)) if config else Config()
        workplace = workplace or ThisMachine()
        self.site = workplace.site(self.config, devices)
        self.devices = self.site.devices
        self._report_phase = report_phase
        self._folder = folders.temporary("evaluator")
        self._keeps_logs = logs is not None
        self._logs = Path(logs).resolve() if logs else self._folder / "logs"
        self._lock = threading.RLock()
        self._open: dict[str, _Entry] = {}
        self._submitted: set[Future[Record]] = set()
        self._closed = False
        self._planner = Planner(self.config, self.site.surroundings, self._folder)
        try:
            more = (self._tell, self._phase, [self._folder])
            self._pool = workplace.slots(self.devices, self.config, self._logs, self.config.seed, *more)
        except BaseException:
            folders.remove_at_end(self._folder)
            raise
        # Also for whoever keeps deadlines of its own beside those of submissions.
        self.deadlines = Deadlines()
        self._lines = Lines(self._plan)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(cancel=kind is not None)

    def close(self, *, cancel: bool = False) -> None:
        """End all processes, after what was submitted is done or, with `cancel`, at once."""
        with self._lock:
            self._closed = True
            submitted = list(self._submitted)
        try:
            if not cancel:
                wait(submitted)
        finally:
            for future in submitted:
                future.cancel()
            self._lines.close(wait=False)
            self.deadlines.close()
            self._pool.close()
            self._planner.close()
            # What a thread was reading is gone, and so it ends.
            self._lines.close(wait=True)
            for future in submitted:
                settle(future, CancelledByClose("the evaluator was closed"))
            folders.remove_at_end(self._folder)

    @property
    def alive(self) -> bool:
        """Whether a device is left to evaluate on."""
        return self._pool.alive

    def submit(
        self,
        problem: Source,
        candidate: Source,
        *,
        variant: str = "default",
        precision: str = "default",
        name: str = "",
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> Future[Record]:
        """Have one candidate evaluated; the future has its Record, or UsageError where problem or candidate is none.

        `problem` is a path, a name like attention/sdpa, or the text of a file; `candidate` a text, or the `Path` of a
        file; `name` is what records call a text. A higher `priority` is first. `deadline_s` counts from now, and says
        how long it may wait: where its build or evaluation has not begun by then, it is a `harness_error` (`deadline`).
        With half of it gone, it has the next higher priority. One that has begun is bounded by the config's limits
        alone. A future can be cancelled until its evaluation begins. Raises UsageError for arguments of other types, or
        a deadline that is none.
        """
        one = Submission(problem, candidate, variant, precision, name, priority, deadline_s)
        with self._lock:
            if self._closed:
                raise UsageError("the evaluator is closed")
            self._submitted.add(one.future)
        one.future.add_done_callback(lambda _: self._is_done(one))
        if deadline_s is not None:
            calls = {HURRY_AT * deadline_s: self._press, deadline_s: self._expire}
            numbers = [self.deadlines.at(time.monotonic() + s, functools.partial(do, one)) for s, do in calls.items()]
            # Its text must not be kept for as long as that.
            one.future.add_done_callback(lambda _: self.deadlines.forget(*numbers))
        self._lines.add(one)
        return one.future

    def map(self, problem: Source, candidates: Iterable[Source], **options: object) -> Iterator[Record]:
        """The records of several candidates of one problem, in their order; `options` are those of `submit`."""
        futures = [self.submit(problem, candidate, **options) for candidate in candidates]  # type: ignore[arg-type]
        return (future.result() for future in futures)

    async def aevaluate(self, problem: Source, candidate: Source, **options: object) -> Record:
        """As `submit`, for asyncio."""
        return await asyncio.wrap_future(self.submit(problem, candidate, **options))  # type: ignore[arg-type]

    async def amap(self, problem: Source, candidates: Iterable[Source], **options: object) -> AsyncIterator[Record]:
        """As `map`, for asyncio."""
        futures = [self.submit(problem, candidate, **options) for candidate in candidates]  # type: ignore[arg-type]
        try:
            for future in futures:
                yield await asyncio.wrap_future(future)
        finally:
            for future in futures:
                future.cancel()

    def _plan(self, one: Submission) -> None:
        """Find out which job a submission is, and hand it to the pool, unless the same one is under way."""
        if one.future.done():
            return
        disk.wait_for_room(self._folder, one.future.done)
        one.is_read = True
        try:
            with self._planner.planned(one) as job:
                entry = self._entry(one, job)
                if entry is not None:
                    self._begin(entry)
        except UsageError as error:
            settle(one.future, error)
        except BaseException as error:
            settle(one.future, self._failed(one, f"exception:{type(error).__name__}", f"the harness failed: {error}"))

    def _entry(self, one: Submission, job: Job) -> _Entry | None:
        """What a submission waits for, if it is the first to do so."""
        with self._lock:
            known = self._open.get(job.key)
            if known is not None:
                known.waiting.append(one)
                if known.begun:
                    begin(one.future)
                self._hurry(known)
                return None
            # Logs are named after it, and two files may have one name.
            own = msgspec.structs.replace(job.candidate, name=f"{job.candidate.name}-{job.key[:12]}")
            entry = _Entry(msgspec.structs.replace(job, candidate=own), [one], job.candidate.name)
            self._open[job.key] = entry
            return entry

    def _begin(self, entry: _Entry) -> None:
        try:
            (entry.task,) = self._pool.submit([entry.job], priority=entry.waiting[0].priority)
        except BaseException as error:
            self._end(entry, error)
            return
        self._hurry(entry)
        self._withdraw(entry)

    def _hurry(self, entry: _Entry) -> None:
        """A job is as urgent as the most urgent submission that has waited for it."""
        with self._lock:
            if entry.task is not None:
                self._pool.hurry(entry.task, max(one.priority for one in entry.waiting))

    def _is_done(self, one: Submission) -> None:
        """A future has its end: by a record, a deadline, or because it was cancelled."""
        with self._lock:
            self._submitted.discard(one.future)
            entry = next((entry for entry in self._open.values() if one in entry.waiting), None)
        if entry is not None:
            self._withdraw(entry)

    def _withdraw(self, entry: _Entry) -> None:
        """Take back a job that nobody waits for any more, unless it has begun."""
        with self._lock:
            unwanted = entry.task is not None and all(one.future.done() for one in entry.waiting)
            if unwanted and entry.task is not None and self._pool.withdraw(entry.task):
                self._open.pop(entry.job.key, None)

    def _phase(self, slot: str, title: str, phase: str) -> None:
        self._report_phase(slot, title, phase)
        if phase != "starting":
            return
        with self._lock:
            for entry in self._open.values():
                if entry.job.title == title and not entry.begun:
                    entry.begun = True
                    for one in entry.waiting:
                        begin(one.future)

    def _tell(self, task: Task, end: Record | BaseException) -> None:
        with self._lock:
            entry = self._open[task.job.key]
        try:
            told = end if isinstance(end, BaseException) else self._presentable(end, entry.name)
        except Exception as error:
            # Whoever waits must hear of it.
            told = error
        self._end(entry, told)
        if not self._keeps_logs:
            for name in recording.logs(entry.job):
                (self._logs / name).unlink(missing_ok=True)

    def _end(self, entry: _Entry, end: Record | BaseException) -> None:
        with self._lock:
            self._open.pop(entry.job.key, None)
        for one in entry.waiting:
            if isinstance(end, BaseException):
                why = f"the harness failed: {type(end).__name__}: {end}"
                settle(one.future, self._failed(one, f"exception:{type(end).__name__}", why))
            else:
                settle(one.future, end)

    def _presentable(self, record: Record, name: str) -> Record:
        """The record as a run keeps it, under the candidate's own name and without our folder's."""
        inside = f"{self._folder}/"
        told = records.with_texts(record, lambda text: places.portable(text.replace(inside, "")))
        log = record.log if self._keeps_logs else ""
        return records.presentable(msgspec.structs.replace(told, candidate=name, log=log))

    def _press(self, one: Submission) -> None:
        """The deadline of a submission is near: it is more urgent than others of its priority."""
        with self._lock:
            one.priority += 1
            entry = next((entry for entry in self._open.values() if one in entry.waiting), None)
        if entry is not None:
            self._hurry(entry)

    def _expire(self, one: Submission) -> None:
        """End a submission whose deadline has passed, if it still waits; now, or when it waits again.

        What has begun has the config's limits, and a record of its own. A candidate that hangs would else be excused by
        the deadline, and one that waited long be blamed for it.
        """
        if one.future.done():
            return
        if self._has_begun(one):
            self.deadlines.at(time.monotonic() + LOOK_AGAIN_S, functools.partial(self._expire, one))
            return
        why = "its deadline passed before its evaluation began; submit it again, with more time or fewer at once"
        settle(one.future, self._failed(one, "deadline", why))

    def _has_begun(self, one: Submission) -> bool:
        with self._lock:
            entry = next((entry for entry in self._open.values() if one in entry.waiting), None)
            if entry is None or entry.task is None:
                return one.is_read
            return self._pool.has_begun(entry.task)

    def _failed(self, one: Submission, reason: str, message: str) -> Record:
        record = Record(
            key="",
            problem="" if is_text(one.problem) else str(one.problem),
            variant=one.variant,
            precision=one.precision,
            candidate=one.name or (one.candidate.stem if isinstance(one.candidate, Path) else ""),
            status=Status.HARNESS_ERROR,
            reason=reason,
            message=message,
            device=self.devices[0].name,
            baseline=self.config.baseline,
        )
        return self._presentable(record, record.candidate)


def evaluate(
    problem: Source,
    candidate: Source,
    *,
    config: Config | str | Path | None = None,
    variant: str = "default",
    precision: str = "default",
) -> Record:
    """Evaluate one candidate, by processes that are started for it: for several, use an Evaluator.

    `problem` and `candidate` are as in Evaluator.submit. Raises UsageError.
    """
    with Evaluator(config) as evaluator:
        return evaluator.submit(problem, candidate, variant=variant, precision=precision).result()


class CancelledByClose(UsageError):
    """The evaluator was closed before a submission was done."""


def begin(future: Future[Record]) -> None:
    """From now on a future cannot be cancelled, unless it has its end."""
    if not future.done():
        # By its deadline it may have ended just now.
        with contextlib.suppress(InvalidStateError):
            future.set_running_or_notify_cancel()


def settle(future: Future[Record], told: Record | BaseException) -> None:
    """Give a future its end, unless it has one."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(told, BaseException):
            future.set_exception(told)
        else:
            future.set_result(told)
