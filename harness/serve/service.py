"""The service behind the HTTP interface: a bounded queue in front of an Evaluator, and tasks that outlive it."""

from __future__ import annotations

import contextlib
import functools
import math
import secrets
import sqlite3
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path

import msgspec

from harness import environment, records
from harness.api import Config, Evaluator, UsageError
from harness.execution.workplace import ThisMachine, Workplace
from harness.records import Record, Status, is_no_word
from harness.serve.contents import Contents
from harness.serve.fair_use import FairUse
from harness.serve.requests import PRIORITIES, BadRequest, EvaluateRequest
from harness.serve.store import OPEN, NoRoom, Store, Stored

# Of the last evaluations, by which a client is told when to come again.
REMEMBERED = 50
# No deadline is shorter.
LEAST_S = 1e-3
LONGEST_RETRY_S = 300
FORGET_EVERY_S = 600.0
WRITE_AGAIN_S = 5.0
# When a service that ends may be back.
BACK_S = 10


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decides; times are in seconds.

    `queue` bounds tasks that have not ended, `disk_bytes` what tasks and results take on disk.
    """

    queue: int = 256
    deadline_s: float = 600.0
    keep_s: float = 86_400.0
    disk_bytes: int = 4_000_000_000
    # A problem's source is run by the trusted judge, unconfined.
    allow_problem_source: bool = False
    # Evaluate also while other programs compute on the card.
    share_card: bool = False


class Service:
    """Takes in tasks, has them evaluated, and tells when they end. Thread-safe.

    `ended` is called with a task's id when it has ended. Tasks that an earlier service on the same folder had accepted
    are taken up. Raises UsageError as Evaluator does.
    """

    def __init__(
        self,
        config: Config,
        folder: Path,
        settings: Settings,
        ended: Callable[[str], None],
        workplace: Workplace | None = None,
    ) -> None:
        self.settings = settings
        self.counts = Counter[str]()
        self.running: dict[str, str] = {}
        # Why the last task that ended could not be noted; empty if it could.
        self.trouble = ""
        self._ended = ended
        self._config = config
        self._walls_s = deque[float](maxlen=REMEMBERED)
        self._lock = threading.RLock()
        self._open: dict[str, Future[Record]] = {}
        self._closing = False
        self._store = Store(folder, settings.disk_bytes)
        with contextlib.ExitStack() as made:
            made.callback(self._store.close)
            unfinished = self._store.unfinished()
            # A cluster's cards are not in this machine.
            devices = environment.choose_devices(config.device) if workplace is None else []
            self.fair_use = FairUse(devices, settings.share_card)
            self.fair_use.check_start()
            workplace = workplace or ThisMachine(admits=self.fair_use.admits)
            self.evaluator = Evaluator(config, report_phase=self._phase, workplace=workplace)
            made.callback(self.evaluator.close, cancel=True)
            self._contents = Contents(config, self.evaluator.site.surroundings, settings.allow_problem_source)
            made.pop_all()
        self._forgot_s = -math.inf
        for task in unfinished:
            self._begin(task)

    def close(self) -> None:
        """End all processes. What has not ended is taken up by the next service on the same folder."""
        with self._lock:
            self._closing = True
        self.evaluator.close(cancel=True)
        self._store.close()

    @property
    def length(self) -> int:
        """How many tasks have not ended."""
        return len(self._open)

    def submit(self, requests: Sequence[EvaluateRequest], arrived_s: float) -> list[Stored]:
        """Accept all of the requests or none; they are on disk when this returns.

        `arrived_s` is when they came, in seconds since 1970. Raises BadRequest.
        """
        self._check_open()
        self._forget()
        made = [self._task(request, arrived_s) for request in requests]
        with self._lock:
            self._check_open()
            found = [self._known(task) or task for task in made]
            new = [task for task in found if task in made]
            waiting = [task for task in new if task.status == OPEN]
            self._check_room(len(waiting))
            try:
                self._store.accept(new)
            except NoRoom as error:
                self.counts["refused"] += 1
                raise BadRequest(429, f"{error}; come again", self.retry_after_s()) from error
            self.counts["accepted"] += len(waiting)
            self.counts["cached"] += len(new) - len(waiting)
            for task in waiting:
                self._begin(task, task.content)
        return found

    def task(self, identity: str) -> Stored | None:
        return self._store.task(identity)

    def is_running(self, identity: str) -> bool:
        future = self._open.get(identity)
        return future is not None and future.running()

    def cancel(self, identity: str) -> None:
        """End a task without a record; an evaluation that has begun goes on, and its result is kept."""
        with self._lock:
            future = self._open.pop(identity, None)
            if future is not None and self._store.end(identity, "cancelled"):
                self.counts["cancelled"] += 1
        if future is not None:
            future.cancel()
            self._ended(identity)

    def retry_after_s(self) -> int:
        """When there may be room again, by how long evaluations took of late."""
        usual_s = sum(self._walls_s) / len(self._walls_s) if self._walls_s else 10.0
        return max(1, min(LONGEST_RETRY_S, math.ceil(usual_s / len(self.evaluator.devices))))

    def _check_open(self) -> None:
        if self._closing:
            raise BadRequest(503, "the service is ending; send it again when it is back", BACK_S)

    def _check_room(self, wanted: int) -> None:
        if wanted > self.settings.queue:
            raise BadRequest(413, f"a batch of {wanted} is larger than the queue, which takes {self.settings.queue}")
        if wanted and self.length + wanted > self.settings.queue:
            self.counts["refused"] += 1
            message = f"the queue is full ({self.length} of {self.settings.queue}); come again"
            raise BadRequest(429, message, self.retry_after_s())

    def _task(self, request: EvaluateRequest, arrived_s: float) -> Stored:
        content = self._contents.digest(request)
        kept = None if request.force else self._store.result(content, arrived_s - self.settings.keep_s)
        return Stored(
            id=request.task_id or secrets.token_hex(16),
            content=content,
            request=request,
            accepted_at=arrived_s,
            expires_at=arrived_s + (request.deadline_s or self.settings.deadline_s),
            status="completed" if kept else OPEN,
            ended_at=time.time() if kept else None,
            cached=kept is not None,
            record=kept,
        )

    def _known(self, task: Stored) -> Stored | None:
        """The task that has this id already. Raises BadRequest where that is another one."""
        known = self._store.task(task.id)
        # The same request is the same task, also where the problem's file was changed since.
        if known is not None and known.content != task.content and known.request != task.request:
            raise BadRequest(409, f"task_id '{task.id}' is that of another submission")
        return known

    def _begin(self, task: Stored, content: str = "") -> None:
        """Hand a task that is on disk to the evaluator, with what is left of its time; `content`: its digest as it is
        now, which takes long where there is much data beside a problem."""
        request = task.request
        # What the last service left may be late already.
        left_s = max(task.expires_at - time.time(), LEAST_S)
        try:
            # Of the problem as it is now, by this service's config: both may have changed since it was accepted.
            content = content or self._contents.digest(request)
            problem = request.problem_source or self._contents.problem(request.problem).path
            future = self.evaluator.submit(
                # A text without a line break would be a path.
                f"{problem}\n" if request.problem_source else problem,
                request.candidate,
                variant=request.variant,
                precision=request.precision,
                name=request.name,
                priority=PRIORITIES[request.priority],
                deadline_s=left_s,
            )
        except (BadRequest, UsageError) as error:
            if not self._closing:
                self._end(task.id, "failed", error=str(error))
            return
        with self._lock:
            self._open[task.id] = future
        future.add_done_callback(functools.partial(self._done, task.id, request, content))

    def _done(self, identity: str, request: EvaluateRequest, content: str, future: Future[Record]) -> None:
        """The evaluator is done with a task, which may have been cancelled before."""
        with self._lock:
            self._open.pop(identity, None)
        if self._closing:
            return
        try:
            record = future.result()
        except CancelledError:
            return
        except Exception as error:
            self._end(identity, "failed", error=str(error))
            return
        if (record.status, record.reason) == (Status.HARNESS_ERROR, "deadline"):
            self.counts["expired"] += 1
            self._end(identity, "completed", _named(record, request))
            return
        with self._lock:
            self._walls_s.append(record.wall_s or 0.0)
            self.counts[f"status {record.status}"] += 1
        kept = not is_no_word(record) and records.is_final(record) and self._is_still(content, request)
        self._end(identity, "completed", record, content=content if kept else "")

    def _is_still(self, content: str, request: EvaluateRequest) -> bool:
        """Whether the problem's file is as it was when the evaluation was asked for."""
        try:
            return self._contents.digest(request) == content
        except BadRequest:
            return False

    def _end(
        self, identity: str, status: str, record: Record | None = None, error: str = "", content: str = ""
    ) -> None:
        """Note how a task ended, and its record by `content`; again and again while the disk does not take it."""
        try:
            if record is not None and content:
                self._keep(content, record)
            ended = self._store.end(identity, status, record and records.presentable(record), error[:2000])
        except sqlite3.Error as failure:
            self.trouble = f"tasks cannot be kept: {failure}"
            again = functools.partial(self._end, identity, status, record, error, content)
            self.evaluator.deadlines.at(time.monotonic() + WRITE_AGAIN_S, again)
            return
        self.trouble = ""
        if ended:
            self._ended(identity)

    def _keep(self, content: str, record: Record) -> None:
        """Keep a result for later. Where that part of the file is damaged, it is not kept."""
        try:
            self._store.keep(content, record)
        except sqlite3.OperationalError:
            # The disk may be full.
            raise
        except sqlite3.DatabaseError as error:
            print(f"a result cannot be kept: {error}", file=sys.stderr)

    def _phase(self, slot: str, title: str, phase: str) -> None:
        with self._lock:
            if phase:
                self.running[slot] = f"{title}: {phase}"
            else:
                self.running.pop(slot, None)

    def _forget(self) -> None:
        if time.monotonic() - self._forgot_s > FORGET_EVERY_S:
            self._forgot_s = time.monotonic()
            self._store.forget(time.time() - self.settings.keep_s)


def _named(record: Record, request: EvaluateRequest) -> Record:
    """A record without a job, with the names of who asked for it."""
    return msgspec.structs.replace(record, problem=request.problem, candidate=request.name or "candidate")
