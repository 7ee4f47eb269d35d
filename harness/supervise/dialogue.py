"""The supervisor's side of a judge: questions, answers, and what it tells of its phases in between."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from harness.catalog.jobs import Job
from harness.processes.nursery import Child
from harness.wire.channel import ProtocolError
from harness.wire.faults import BEFORE_THE_PROBLEM
from harness.wire.messages import (
    DeviceTested,
    Evaluate,
    Leave,
    Left,
    Open,
    Opened,
    Phase,
    Retime,
    Retimed,
    TestDevice,
    Verdict,
    Waiting,
)

# Times the limit of the question itself.
LONGEST_WAIT = 10
# For what a judge does before the problem's own code: it loads libraries and measures the device.
START_S = 300.0

Answer = TypeVar("Answer", Opened, Verdict, Retimed, Left, DeviceTested)


class JobPhases:
    """What a job's parts take, the opening of its group included, and the telling of them while they last."""

    def __init__(self, job: Job, report: Callable[[Job, str], None]) -> None:
        self.spent_s: dict[str, float] = {}
        self._job = job
        self._report = report

    def report(self, name: str) -> None:
        self._report(self._job, name)

    def opened(self, spent_s: dict[str, float]) -> None:
        """Its group is open; what came before was in vain."""
        self.spent_s = {f"open: {name}": seconds for name, seconds in spent_s.items()}

    def judged(self, spent_s: dict[str, float]) -> None:
        self.spent_s |= spent_s


class Dialogue:
    """Asks one judge, one thing after the other."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._reached: list[tuple[str, float]] = []
        self._before: list[tuple[str, float]] = []

    def preceded_by(self, name: str, begun: float) -> None:
        """What has been going on since `begun` is the next answer's first phase."""
        self._before = [(name, begun)]

    def ask(
        self,
        request: Open | Evaluate | Retime | Leave | TestDevice,
        kind: type[Answer],
        timeout_s: float,
        *,
        handed: socket.socket | None = None,
        turns: int | None = None,
        report_phase: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer, a `kind`. The judge is handed the end of a runner's channel and the file of the device's turns,
        which are then closed here. The time that it waits for its turn does not count, nor what comes before the
        problem's own code.

        Raises NotSendable, PeerGone, DeadlineExceeded, and ProtocolError for any other answer.
        """
        self._reached, self._before = self._before, []
        given: tuple[int, ...] = () if handed is None else (handed.fileno(),)
        try:
            self.child.channel.send(request, given if turns is None else (*given, turns))
        finally:
            if turns is not None:
                os.close(turns)
        if handed is not None:
            handed.close()
        left_s, waits, since = timeout_s, False, time.monotonic()
        while True:
            starts = bool(self._reached) and self.phase in BEFORE_THE_PROBLEM
            # Those who have the turn have deadlines of their own.
            limit_s = LONGEST_WAIT * timeout_s if waits else START_S if starts else left_s
            message = self.child.channel.message(max(limit_s, 0.001))
            now = time.monotonic()
            left_s -= 0.0 if waits or starts else now - since
            since = now
            if isinstance(message, Waiting):
                waits = message.begins
            elif isinstance(message, Phase):
                if not message.reached:
                    self._reached.append((message.name, time.monotonic()))
                if report_phase is not None:
                    report_phase(f"{message.name} {message.reached}".rstrip())
            elif isinstance(message, kind):
                return message
            else:
                raise ProtocolError(f"expected {kind.__name__}, got {type(message).__name__}")

    @property
    def phase(self) -> str:
        """The last phase that the judge told of."""
        return self._reached[-1][0]

    def spent_s(self) -> dict[str, float]:
        """Seconds from each phase of the last answer to the next, and from the last one to now."""
        ends = [*(begun for _, begun in self._reached[1:]), time.monotonic()]
        return {name: round(end - begun, 4) for (name, begun), end in zip(self._reached, ends, strict=True)}
