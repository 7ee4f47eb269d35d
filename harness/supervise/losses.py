"""Outcomes for processes that died or fell silent, as the supervisor sees them."""

from __future__ import annotations

import re
import time
from typing import Any

import msgspec

from harness.catalog.jobs import Job
from harness.errors import AssayError
from harness.processes.nursery import Child, NotStarted, ZygoteLost
from harness.processes.renewal import Starter
from harness.records import Outcome, Status
from harness.wire import causes, faults
from harness.wire.messages import Verdict

# As Python prints an exception that nobody caught, below its traceback.
ERROR_LINE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?$", re.MULTILINE)

# What may have passed by then is tried again after so many times what the last try took: a problem that never opens
# costs a tenth of the time, and one that a shortage or a slow moment kept from opening is not blamed for ever.
REST = 9

# A group's: Job.group.
Name = tuple[str, str, str, str]


class ProcessLost(AssayError):
    """A process of ours died: `reason` says which. `opening`: before any candidate was there; `problems` is the outcome
    where that is the problem's own doing, should it come to that again."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        opening: bool = False,
        problems: Outcome | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.opening = opening
        self.problems = problems
        self.evidence = evidence or {}


def not_started(error: NotStarted) -> Outcome:
    """What becomes of a job whose process could not be started."""
    return Outcome(status=Status.HARNESS_ERROR, reason=error.reason, message=str(error))


def zygote_lost(*, opening: bool = False) -> ProcessLost:
    """The forking parent died, and with it every process that it had forked."""
    return ProcessLost("zygote_lost", "the forking parent died", opening=opening)


def started(nursery: Starter, *args: Any, **kwargs: Any) -> Child:
    """As Starter.start; raises ProcessLost in place of ZygoteLost."""
    try:
        return nursery.start(*args, **kwargs)
    except ZygoteLost as error:
        raise ProcessLost("zygote_lost", str(error), opening=True) from error


def judge_lost(judge: Child, why: BaseException) -> ProcessLost:
    """The judge died or broke the protocol while it had a candidate; `why` is what its channel raised."""
    exit_code = judge.wait(2.0)
    if judge.orphaned:
        return zygote_lost()
    message = f"the judge went away: {why}; see {judge.log.name}"
    return ProcessLost("judge_lost", message, evidence=_of_judge(judge, exit_code))


def unopened(job: Job, judge: Child, why: BaseException, phase: str, limit_s: float) -> ProcessLost:
    """The judge could not open a problem: it died in `phase`, or took longer than `limit_s`."""
    exit_code = judge.wait(2.0)
    if judge.orphaned:
        return zygote_lost(opening=True)
    message = f"the judge could not open {job.problem.id}: {why}; see {judge.log.name}"
    problems = faults.unopened(exit_code, phase, limit_s, judge.log.name)
    evidence = _of_judge(judge, exit_code)
    return ProcessLost("judge_lost", message, opening=True, problems=problems, evidence=evidence)


def _of_judge(judge: Child, exit_code: int | None) -> dict[str, Any]:
    return {"judge_exit_code": exit_code, "judge_log_tail": judge.log_tail()}


def of_second(job: Job, first: ProcessLost, second: ProcessLost) -> Outcome:
    """The outcome of a job that has cost two processes of ours."""
    evidence = {"first": str(first), "second": str(second), **second.evidence}
    short = next((loss for loss in (second, first) if loss.reason == causes.SHORTAGE), None)
    if short is not None:
        return Outcome(status=Status.HARNESS_ERROR, reason=short.reason, message=str(short), evidence=evidence)
    if second.opening or job.candidate.baseline:
        return Outcome(status=Status.HARNESS_ERROR, reason=second.reason, message=str(second), evidence=evidence)
    message = f"a harness process died in both evaluations of this candidate: {second}"
    return Outcome(status=Status.REJECTED, reason=second.reason, message=message, evidence=evidence)


def spoiled_by(verdict: Verdict) -> Outcome:
    """The outcome of a candidate beside which alone the baseline is wrong."""
    message = f"beside this candidate, and not without it: {verdict.outcome.message}"
    return Outcome(status=Status.REJECTED, reason="spoils_baseline", message=message, evidence=verdict.evidence)


def death(runner: Child, exit_code: int | None, phase: str) -> Outcome:
    """The outcome of a candidate whose process went away in `phase`."""
    found = faults.death(exit_code, phase, runner.cause)
    evidence = found.evidence | {"exit_code": exit_code, "log_tail": runner.log_tail()}
    return Outcome(
        status=found.status, reason=found.reason, message=found.message, limit=found.limit, evidence=evidence
    )


def timed_out(outcome: Outcome, process: Child) -> Outcome:
    """A timeout's outcome with the end of what the process had printed, and the last error in it: whoever waits for a
    process of its own that has died of one waits for ever."""
    tail = process.log_tail()
    if not tail:
        return outcome
    errors = ERROR_LINE.findall(tail)
    said = f"; the last error in its log: {errors[-1][:300]}" if errors else ""
    evidence = outcome.evidence | {"log_tail": tail}
    return msgspec.structs.replace(outcome, message=outcome.message + said, evidence=evidence)


def no_verdict(total_s: float, spent_s: dict[str, float]) -> Outcome:
    """The outcome of a candidate for which the judge gave no verdict in time; `spent_s` is what its phases took."""
    message = f"no verdict within limits.total_s = {total_s:g} s"
    if spent_s:
        longest = max(spent_s, key=lambda name: spent_s[name])
        message += f", of which {spent_s[longest]:.0f} s went into: {longest}"
    return Outcome(status=Status.TIMEOUT, reason="total", message=message, limit="limits.total_s")


def until_s(spent_s: float) -> float:
    """Until when, of the monotonic clock, what has just been found in so long is not to be found out again."""
    return time.monotonic() + REST * spent_s


class Unopened:
    """What is said of the jobs of groups that could not be opened."""

    def __init__(self) -> None:
        self._kept: dict[Name, tuple[Outcome, float]] = {}

    def keep(self, group: Name, outcome: Outcome, spent_s: float = float("inf")) -> Outcome:
        """Say `outcome` of a group, which it took so long to find out; for ever where no other try can differ."""
        self._kept[group] = outcome, until_s(spent_s)
        return outcome

    def told(self, group: Name) -> Outcome | None:
        """What is to be said of a group; None where it is to be opened."""
        outcome, until = self._kept.get(group, (None, 0.0))
        if outcome is not None and time.monotonic() >= until:
            del self._kept[group]
            return None
        return outcome
