"""The group that is open on a device: a judge that knows one problem, and the baseline's runner beside it. No torch."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path

from harness.catalog.baselines import ALLOWANCES
from harness.catalog.jobs import Job
from harness.config import Config, Limits
from harness.environment import Device, why_no_cuda
from harness.errors import AssayError
from harness.processes.nursery import Child
from harness.processes.renewal import Starter
from harness.records import Outcome, Status
from harness.supervise import losses
from harness.supervise.builds import KILLED, BuildResult
from harness.supervise.dialogue import Dialogue, JobPhases
from harness.supervise.lanes import Lanes
from harness.supervise.losses import Name, ProcessLost, Unopened, until_s
from harness.supervise.recording import group_name
from harness.supervise.runners import Runners, end
from harness.wire import causes, faults
from harness.wire.channel import DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.messages import CandidateSource, FromJudge, Leave, Left, Open, Opened

# For a judge to free what a problem took.
LEAVE_S = 30.0


class OpenGroup:
    """A judge that has opened one problem at one variant and precision, and the baseline's runner beside it."""

    def __init__(self, name: Name, judge: Dialogue, baseline: Child) -> None:
        self.name = name
        self.judge = judge
        self.baseline = baseline
        # Why nobody can be judged by it; that is said until so long, of the monotonic clock.
        self.fault: Outcome | None = None
        self._fault_until_s = 0.0

    def found_faulty(self, fault: Outcome | None, opening_s: float) -> None:
        """What opening it, which took so long, has said about it."""
        self.fault, self._fault_until_s = fault, until_s(opening_s)

    def wake(self) -> None:
        """Continue a judge that a candidate may have stopped, where nothing keeps it from sending signals."""
        with contextlib.suppress(OSError):
            os.kill(self.judge.child.pid, signal.SIGCONT)

    @property
    def alive(self) -> bool:
        """Whether its judge is there and, if it has a fault, that need not be found out again."""
        outdated = self.fault is not None and time.monotonic() >= self._fault_until_s
        return not outdated and self.judge.child.wait(0.0) is None

    def end(self) -> None:
        self.judge.child.kill()
        end(self.baseline)


class Groups:
    """Opens one group after the other on one device, in the same judge: what that has loaded stays loaded.

    A judge in which a problem's code leaves something behind is replaced, as one whose group broke off is. Without a
    seed, each opening has a secret one of its own.
    """

    def __init__(
        self,
        nursery: Starter,
        device: Device,
        config: Config,
        logs: Path,
        seed: int | None,
        runners: Runners,
        lanes: Lanes,
    ) -> None:
        self._lanes = lanes
        # Of the device's memory, what the next group may take.
        self.memory_share = lanes.memory_share
        self._nursery = nursery
        self._device = device
        self._config = config
        self._logs = logs
        self._seed = seed
        self._runners = runners
        # The one that is open, or is being opened.
        self.current: OpenGroup | None = None
        self.unopened = Unopened()

    def end(self) -> None:
        group, self.current = self.current, None
        if group is not None:
            group.end()

    def ready(self, job: Job, phases: JobPhases) -> OpenGroup:
        """The job's group, ready to evaluate; opened where another one was in its place.

        Raises ProcessLost, NotSendable, and what starting a process raises.
        """
        if self.current is not None and self.current.name == job.group and self.current.alive:
            self.current.wake()
            return self.current
        begun = time.monotonic()
        judge = self._free_judge()
        if judge is None:
            phases.report("starting judge")
            log = self._logs / f"{group_name(job)}.judge.txt"
            judge = Dialogue(losses.started(self._nursery, "judge", FromJudge, log, self._device.environment))
        judge.preceded_by("judge", begun)
        log = self._logs / f"{group_name(job)}.baseline.txt"
        try:
            baseline, its_end = self._runners.start(log, job.problem.path, BuildResult(), spared=True)
        except AssayError:
            judge.child.kill()
            raise
        self.current = OpenGroup(job.group, judge, baseline)
        limits = self._config.limits
        limit_s = limits.load_s + limits.first_call_s + limits.total_s
        try:
            opened = judge.ask(
                self._request(job, baseline),
                Opened,
                limit_s,
                handed=its_end,
                turns=self._lanes.turns(),
                report_phase=phases.report,
            )
        except (PeerGone, ProtocolError, DeadlineExceeded) as error:
            raise losses.unopened(job, judge.child, error, judge.phase, limit_s) from error
        finally:
            its_end.close()
        phases.opened(judge.spent_s())
        self.current.found_faulty(_fault(opened, baseline, limits), time.monotonic() - begun)
        return self.current

    def _free_judge(self) -> Dialogue | None:
        """The judge of the group that was open, ready for another one; None where there is none that is as good as a
        fresh one. Ends the group."""
        group, self.current = self.current, None
        if group is None:
            return None
        if group.fault is None and group.alive:
            group.wake()
            with contextlib.suppress(PeerGone, ProtocolError, DeadlineExceeded):
                if not group.judge.ask(Leave(), Left, LEAVE_S).changed:
                    end(group.baseline)
                    return group.judge
        group.end()
        return None

    def _request(self, job: Job, baseline: Child) -> Open:
        return Open(
            problem=reference(job, "eager"),
            baseline=reference(job, self._config.baseline),
            precision=job.precision,
            device=self._device.alone,
            seed=secrets.randbits(63) if self._seed is None else self._seed,
            allow=tuple(self._config.allow),
            check=self._config.check,
            timing=self._config.timing,
            limits=self._config.limits,
            runner_pid=baseline.pid,
            memory_share=self.memory_share,
            why_no_cuda=why_no_cuda() if self._device.kind == "cpu" else "",
        )


def reference(job: Job, baseline: str) -> CandidateSource:
    """The job's problem, run in one of PyTorch's own ways."""
    return CandidateSource(
        path=str(job.problem.path.resolve()),
        entries=("Model",),
        overrides=job.overrides,
        baseline=baseline,
        allow=ALLOWANCES.get(baseline, ()),
    )


def baseline_lost(baseline: Child, exit_code: int | None, phase: str, limits: Limits, *, opening: bool) -> ProcessLost:
    """The baseline's process died in `phase`; `problems` says so where that is the problem's doing, should it come to
    that again: it may have been the largest beside somebody else's build, and is not so twice."""
    cause = baseline.cause
    ran_out = cause in (causes.SHORTAGE, causes.MOST_OF_IT, causes.GIVEN_BACK)
    if ran_out or (cause == causes.OVER_LIMIT and not limits.host_memory_gb):
        # Without a limit in the config it is what happened to be free, which others may have taken.
        return ProcessLost(causes.SHORTAGE, faults.short_of_memory(phase).message, opening=opening)
    died = faults.death(exit_code, phase, cause)
    message = f"the baseline's process died: {died.message}"
    problems = of_baseline(died, limits) if cause else None
    return ProcessLost("baseline_lost", message, opening=opening, problems=problems)


def of_baseline(died: Outcome, limits: Limits) -> Outcome:
    """What the death of a baseline's process says about its problem, where that is the problem's own doing."""
    return Outcome(
        status=Status.INVALID_REFERENCE,
        reason="baseline",
        message=faults.too_small(died.limit, limits, died.message) if died.limit else died.message,
        limit=died.limit,
        evidence=died.evidence,
    )


def _fault(opened: Opened, baseline: Child, limits: Limits) -> Outcome | None:
    """Why nobody can be judged by what was opened. Raises ProcessLost where the baseline's process was lost."""
    if opened.runner != "gone" or opened.fault is None:
        return opened.fault
    exit_code, phase = baseline.wait(2.0), "the baseline's first call"
    died = faults.death(exit_code, phase, baseline.cause)
    if baseline.orphaned or died.reason == KILLED or baseline.cause:
        raise baseline_lost(baseline, exit_code, phase, limits, opening=True)
    return of_baseline(died, limits)
