"""One device's supervisor: starts judge and runners, holds the deadlines, ends processes, turns death into a status.

No torch here: this is the session's side of the boundary.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.catalog import sources
from harness.catalog.baselines import ALLOWANCES
from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device, why_no_cuda
from harness.errors import AssayError
from harness.processes import folders
from harness.processes.nursery import Child, NoProcess
from harness.processes.renewal import Starter
from harness.records import Outcome, Record, Status
from harness.supervise import recording
from harness.supervise.builds import KILLED, BuildResult
from harness.supervise.dialogue import Dialogue
from harness.supervise.recording import file_name, group_name
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.messages import (
    CandidateSource,
    Evaluate,
    FromJudge,
    FromRunner,
    Open,
    Opened,
    Probe,
    Probed,
    Retime,
    Retimed,
    Verdict,
)

# Until a death is heard of by way of the forking parent.
REAP_S = 0.2
# For a runner that is done to end by itself.
LAST_WORDS_S = 0.2
# A fresh process with a context of its own on a busy card.
PROBE_S = 60.0
ENTRIES = ("ModelNew", "Model")


class ProcessLost(AssayError):
    """A process of ours died: `reason` says which. `opening`: before any candidate was there; `problems` is the outcome
    where that is the problem's own doing, should it come to that again."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        opening: bool = False,
        evidence: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.opening = opening
        self.problems: Outcome | None = None
        self.evidence = evidence or {}


class Group:
    """A judge that has opened one problem at one variant and precision, and the baseline's runner beside it."""

    def __init__(self, name: tuple[str, str, str], judge: Dialogue, baseline: Child) -> None:
        self.name = name
        self.judge = judge
        self.baseline = baseline
        # Why nobody can be judged by it.
        self.fault: Outcome | None = None

    def wake(self) -> None:
        """Continue a judge that a candidate may have stopped, where nothing keeps it from sending signals."""
        with contextlib.suppress(OSError):
            os.kill(self.judge.child.pid, signal.SIGCONT)

    @property
    def alive(self) -> bool:
        return self.judge.child.wait(0.0) is None

    def end(self) -> None:
        self.judge.child.kill()
        _end_runner(self.baseline)


class Supervisor:
    """Evaluates one job after the other on one device."""

    def __init__(
        self,
        nursery: Starter,
        device: Device,
        config: Config,
        logs: Path,
        seed: int,
        report_phase: Callable[[Job, str], None],
    ) -> None:
        self._nursery = nursery
        self._device = device
        self._config = config
        self._logs = logs
        self._seed = seed
        self._report_phase = report_phase
        self._group: Group | None = None
        # Of groups whose judge the problem's own code ends: nobody waits for that once more.
        self._unopened: dict[tuple[str, str, str], Outcome] = {}
        # What this job's parts took, the opening of its group included.
        self._phases_s: dict[str, float] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="assay-run-")).resolve()
        # Another user, as a sandboxed runner is, must be able to pass through to its own folder.
        self._scratch.chmod(0o711)

    def close(self) -> None:
        self._end_group()
        folders.remove(self._scratch)

    def evaluate(self, job: Job, build: BuildResult) -> Record:
        """Carry out one job; every failure becomes a record."""
        started = time.monotonic()
        self._phases_s = {}
        if job.problem.fault:
            verdict = Verdict(
                outcome=Outcome(status=Status.INVALID_REFERENCE, reason="contract", message=job.problem.fault)
            )
        elif build.fault is not None:
            verdict = Verdict(outcome=build.fault)
        else:
            verdict = self._judged_again_if_lost(job, build)
        return self._record(job, build, verdict, time.monotonic() - started)

    def _record(self, job: Job, build: BuildResult, verdict: Verdict, wall_s: float) -> Record:
        return recording.record(job, build, verdict, self._device, self._config, phases_s=self._phases_s, wall_s=wall_s)

    def _profiled(self, job: Job) -> bool:
        """Whose kernels a baseline runs needs no telling."""
        return not job.candidate.baseline and self._config.provenance.profile

    def unserved(self, job: Job, why: str) -> Record:
        """The record of a job that no device is left for; the next run tries again."""
        verdict = Verdict(outcome=Outcome(status=Status.HARNESS_ERROR, reason="device_lost", message=why))
        return self._record(job, BuildResult(), verdict, 0.0)

    def device_fault(self) -> str:
        """What is wrong with the device; empty where it still computes, in the judge at hand or else in a fresh one."""
        if self._device.kind == "cpu":
            return ""
        if self._group is not None and not self._fault_seen_by(self._group.judge):
            return ""
        self._end_group()
        log = self._logs / f"{self._device.spec.replace(':', '')}.probe.txt"
        try:
            fresh = self._nursery.start("judge", FromJudge, log, self._device.environment)
        except NoProcess:
            # Nothing is known against it.
            return ""
        try:
            return self._fault_seen_by(Dialogue(fresh, time.monotonic()))
        finally:
            fresh.kill()

    def _fault_seen_by(self, judge: Dialogue) -> str:
        try:
            return judge.ask(Probe(device=self._device.alone), Probed, PROBE_S).fault
        except (PeerGone, ProtocolError, DeadlineExceeded) as error:
            return f"no answer from {self._device.spec}: {error}"

    def _judged_again_if_lost(self, job: Job, build: BuildResult) -> Verdict:
        """What was lost or killed in an evaluation is replaced, and the evaluation repeated once.

        Then it is the candidate's doing: it alone was there both times. It is repeated once, too, where the baseline
        was slow beside the candidate and still is without it. A baseline that was wrong beside the candidate, and a
        fresh one is not without it, was spoilt: runners' outputs can be opened by every process on a card.
        """
        losses: list[ProcessLost] = []
        slower: list[str] = []
        while True:
            try:
                verdict = self._judged(job, build)
                if not verdict.baseline_ok and self._right_by_itself(job):
                    verdict = Verdict(outcome=_spoiled_by(verdict.outcome))
                if verdict.slowed and not slower and self._slower_by_itself(job):
                    slower.append("the baseline had become slower, not by this candidate")
                    continue
                if verdict.outcome.reason != KILLED or losses:
                    again = [f"evaluated_again: {why}" for why in (*losses, *slower)]
                    return msgspec.structs.replace(verdict, warnings=[*again, *verdict.warnings])
                losses.append(ProcessLost("runner_killed", "the candidate's process was killed"))
            except NoProcess as error:
                self._end_group()
                return Verdict(outcome=Outcome(status=Status.HARNESS_ERROR, reason="no_process", message=str(error)))
            except ProcessLost as error:
                self._end_group()
                first = next((loss for loss in losses if loss.opening == error.opening), None)
                if first is not None:
                    return Verdict(outcome=self._of_second_loss(job, first, error))
                losses.append(error)

    def _of_second_loss(self, job: Job, first: ProcessLost, second: ProcessLost) -> Outcome:
        if first.problems and second.problems and not self.device_fault():
            self._unopened[job.group] = second.problems
            return second.problems
        return _of_second_loss(job, first, second)

    def _judged(self, job: Job, build: BuildResult) -> Verdict:
        if job.group in self._unopened:
            return Verdict(outcome=self._unopened[job.group])
        group = self._group_for(job)
        if group.fault is not None:
            return Verdict(outcome=group.fault)
        log = self._logs / f"{file_name(job)}.log"
        runner, its_end = self._start_runner(
            log, job.problem.path if job.candidate.baseline else job.candidate.path, build
        )
        if job.candidate.baseline:
            source = _reference(job, job.candidate.baseline)
        else:
            source = CandidateSource(
                path=str(job.candidate.path.resolve()),
                entries=ENTRIES,
                libraries=build.libraries,
                failures=build.failures,
            )
        verdict: Verdict | None = None
        try:
            verdict = group.judge.ask(
                Evaluate(candidate=source, runner_pid=runner.pid, profiled=self._profiled(job)),
                Verdict,
                self._config.limits.total_s,
                handed=its_end,
                report_phase=functools.partial(self._report_phase, job),
            )
            self._phases_s |= group.judge.spent_s()
        except (PeerGone, ProtocolError) as error:
            raise self._judge_lost(job, f"the judge went away: {error}", group.judge.child) from error
        except DeadlineExceeded:
            # Which of the two hangs cannot be told from outside; neither is kept.
            self._end_group()
            message = f"no verdict within limits.total_s = {self._config.limits.total_s:g} s"
            outcome = Outcome(status=Status.TIMEOUT, reason="total", message=message, limit="limits.total_s")
            verdict = Verdict(outcome=outcome)
        finally:
            its_end.close()
            # A runner that went away by itself gets a moment to be reaped, so that its own exit code is seen; one that
            # the judge has hung up on, a moment to write what it printed.
            exit_code = runner.wait(2.0 if verdict is not None and verdict.runner == "gone" else LAST_WORDS_S)
            _end_runner(runner)
        if runner.orphaned:
            raise ProcessLost("zygote_lost", "the forking parent died")
        if verdict.runner == "gone" and (ended := group.baseline.wait(REAP_S)) is not None:
            # The judge cannot tell whose silence it was, and has hung up on the candidate, too.
            raise ProcessLost("baseline_lost", f"the baseline's process died ({ended})")
        if verdict.runner == "gone":
            verdict = msgspec.structs.replace(verdict, outcome=_cause_of_death(exit_code, verdict.phase, runner))
        if not verdict.baseline_ok or group.baseline.wait(0.0) is not None:
            self._end_group()
        return verdict

    def _slower_by_itself(self, job: Job) -> bool:
        """Whether the baseline is slower than at first now that the candidate is gone; the judge then goes by that."""
        group = self._group
        if group is None:
            return False
        group.wake()
        try:
            report_phase = functools.partial(self._report_phase, job)
            return group.judge.ask(Retime(), Retimed, self._config.limits.total_s, report_phase=report_phase).slower
        except (PeerGone, ProtocolError, DeadlineExceeded):
            self._end_group()
            return False

    def _right_by_itself(self, job: Job) -> bool:
        """Whether a fresh baseline, its candidate being gone, gives the reference's own answers again and again."""
        return self._outputs_are_open() and self._group_for(job).fault is None

    def _outputs_are_open(self) -> bool:
        """Whether other processes can write to what a runner returns."""
        return self._device.kind == "cuda"

    def _group_for(self, job: Job) -> Group:
        """The group's judge, ready to evaluate; started where another group's was in its place."""
        if self._group is not None and self._group.name == job.group and self._group.alive:
            self._group.wake()
            return self._group
        self._end_group()
        self._report_phase(job, "starting judge")
        begun = time.monotonic()
        child = self._nursery.start("judge", FromJudge, self._judge_log(job), self._device.environment)
        judge = Dialogue(child, begun)
        baseline_log = self._logs / f"{group_name(job)}.baseline.txt"
        baseline, its_end = self._start_runner(baseline_log, job.problem.path, BuildResult())
        request = Open(
            problem=_reference(job, "eager"),
            baseline=_reference(job, self._config.baseline),
            precision=job.precision,
            device=self._device.alone,
            seed=self._seed,
            allow=tuple(self._config.allow),
            check=self._config.check,
            timing=self._config.timing,
            limits=self._config.limits,
            runner_pid=baseline.pid,
            why_no_cuda=why_no_cuda() if self._device.kind == "cpu" else "",
        )
        self._group = Group(job.group, judge, baseline)
        limits = self._config.limits
        limit_s = limits.load_s + limits.first_call_s + limits.total_s
        try:
            opened = judge.ask(
                request,
                Opened,
                limit_s,
                handed=its_end,
                report_phase=functools.partial(self._report_phase, job),
            )
        except (PeerGone, ProtocolError, DeadlineExceeded) as error:
            lost = self._judge_lost(job, f"the judge could not open {job.problem.id}: {error}", child, opening=True)
            if lost.reason == "judge_lost":
                exit_code = lost.evidence["judge_exit_code"]
                lost.problems = faults.unopened(exit_code, judge.phase, limit_s, self._judge_log(job).name)
            raise lost from error
        finally:
            its_end.close()
        self._phases_s = {f"open: {name}": seconds for name, seconds in judge.spent_s().items()}
        fault = opened.fault
        if opened.runner == "gone" and fault is not None:
            died = faults.death(baseline.wait(2.0), "the baseline's first call", baseline.cause)
            lost = ProcessLost("baseline_lost", f"the baseline could not start: {died.message}", opening=True)
            if baseline.orphaned or died.reason == KILLED:
                raise lost
            fault = msgspec.structs.replace(died, status=Status.INVALID_REFERENCE, reason="baseline")
            if baseline.cause:
                # It may have been the largest beside somebody else's build, and is not so twice.
                lost.problems = fault
                raise lost
        self._group.fault = fault
        return self._group

    def _start_runner(self, log: Path, source: Path, build: BuildResult) -> tuple[Child, socket.socket]:
        """A fresh runner for one source and its libraries, and the end of its channel that the judge is to have."""
        folder = Path(tempfile.mkdtemp(prefix="runner-", dir=self._scratch))
        environment = dict.fromkeys(("HOME", "TMPDIR", "TRITON_HOME"), str(folder))
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        environment |= self._device.environment
        readable = [*sources.own_files(source.resolve()), *build.libraries.values()]
        card = self._device if self._device.kind == "cuda" else None
        child = self._nursery.start("runner", FromRunner, log, environment, folder, readable=readable, card=card)
        return child, child.take_channel()

    def _judge_lost(self, job: Job, what: str, judge: Child, *, opening: bool = False) -> ProcessLost:
        exit_code = judge.wait(2.0)
        if judge.orphaned:
            return ProcessLost("zygote_lost", "the forking parent died", opening=opening)
        evidence = {"judge_exit_code": exit_code, "judge_log_tail": judge.log_tail()}
        message = f"{what}; see {self._judge_log(job).name}"
        return ProcessLost("judge_lost", message, opening=opening, evidence=evidence)

    def _end_group(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.end()

    def _judge_log(self, job: Job) -> Path:
        """No candidate's log, whatever it is called: these end in `.log`."""
        return self._logs / f"{group_name(job)}.judge.txt"


def _end_runner(runner: Child) -> None:
    """End it and all that it started, and remove its folder, which may be large."""
    runner.kill()
    if runner.folder is not None:
        folders.remove(runner.folder)


def _of_second_loss(job: Job, first: ProcessLost, second: ProcessLost) -> Outcome:
    evidence = {"first": str(first), "second": str(second), **second.evidence}
    if second.opening or job.candidate.baseline:
        return Outcome(status=Status.HARNESS_ERROR, reason=second.reason, message=str(second), evidence=evidence)
    message = f"a harness process died in both evaluations of this candidate: {second}"
    return Outcome(status=Status.REJECTED, reason=second.reason, message=message, evidence=evidence)


def _spoiled_by(outcome: Outcome) -> Outcome:
    """A wrong baseline that is the candidate's doing."""
    message = f"beside this candidate, and not without it: {outcome.message}"
    return Outcome(status=Status.REJECTED, reason="spoils_baseline", message=message, evidence=outcome.evidence)


def _reference(job: Job, baseline: str) -> CandidateSource:
    return CandidateSource(
        path=str(job.problem.path.resolve()),
        entries=("Model",),
        overrides=job.overrides,
        baseline=baseline,
        allow=ALLOWANCES.get(baseline, ()),
    )


def _cause_of_death(exit_code: int | None, phase: str, runner: Child) -> Outcome:
    found = faults.death(exit_code, phase, runner.cause)
    return msgspec.structs.replace(found, evidence={"exit_code": exit_code, "log_tail": runner.log_tail()})
