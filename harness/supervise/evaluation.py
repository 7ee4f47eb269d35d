"""One evaluation: a candidate's runner beside the judge of its group, and what became of both. No torch."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from harness.catalog.jobs import Job
from harness.config import Config
from harness.processes.nursery import Child
from harness.records import Outcome, Status
from harness.supervise import losses
from harness.supervise.builds import BuildResult
from harness.supervise.dialogue import JobPhases
from harness.supervise.groups import Groups, OpenGroup, baseline_lost, reference
from harness.supervise.recording import log_name
from harness.supervise.runners import Runners, end
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import CandidateSource, Evaluate, Verdict

# Until a death is heard of by way of the forking parent.
REAP_S = 0.2
# For a runner that is done to end by itself.
LAST_WORDS_S = 0.2
# How often a candidate is evaluated again without hard inputs that it has raised on.
MOST_WITHOUT = 3
ENTRIES = ("ModelNew", "Model")


class Evaluator:
    """Has candidates judged by the judge of their group."""

    def __init__(self, groups: Groups, runners: Runners, config: Config, logs: Path) -> None:
        self._groups = groups
        self._runners = runners
        self._config = config
        self._logs = logs

    def once(
        self, job: Job, build: BuildResult, phases: JobPhases, *, alone: bool = False, explained: bool = True
    ) -> tuple[Outcome, Verdict | None]:
        """Return the outcome, and the judge's verdict if there was one. Without a verdict the outcome says what the
        supervisor saw. `alone`: from the first call on nothing of another lane's is on the device. Without `explained`
        it does not say why an answer is wrong. Who raises on hard inputs on which nothing is asked is evaluated without
        these.

        Who changes weights in `__init__` and is wrong with the reference's may be right with its own, as KernelBench
        has it: the same seed makes the same weights for both. Raises ProcessLost, NotSendable, and what starting a
        process raises.
        """
        how: dict[str, Any] = {"alone": alone, "explained": explained}
        found = self._evaluated(job, build, phases, **how)
        for _ in range(MOST_WITHOUT):
            if found[1] is None or not found[1].ending.raised_on:
                break
            how["without"] = (*how.get("without", ()), *found[1].ending.raised_on)
            found = self._evaluated(job, build, phases, **how)
        if found[1] is None or not found[1].ending.changed_weights:
            return found
        with_own = self._evaluated(job, build, phases, **how, own_weights=True)
        return found if with_own[0].status is Status.INCORRECT else with_own

    def _evaluated(self, job: Job, build: BuildResult, phases: JobPhases, **how: Any) -> tuple[Outcome, Verdict | None]:
        """`how`: of Evaluate's fields."""
        if (unopened := self._groups.unopened.told(job.group)) is not None:
            return unopened, None
        source = job.problem.path if job.candidate.baseline else job.candidate.path
        # Before its group is open, so that it comes up meanwhile: nothing foreign is in it until the judge sends that.
        runner, its_end = self._runners.start(self._logs / log_name(job), source, build)
        try:
            group = self._group(job, phases)
            if isinstance(group, Outcome):
                return group, None
            verdict, exit_code = self._judged(job, build, group, (runner, its_end), phases, how)
        finally:
            its_end.close()
            end(runner)
        if runner.orphaned:
            raise losses.zygote_lost()
        if verdict is None:
            late = losses.no_verdict(self._config.limits.total_s, group.judge.spent_s())
            return losses.timed_out(late, runner), None
        return self._outcome(verdict, group, runner, exit_code), verdict

    def _group(self, job: Job, phases: JobPhases) -> OpenGroup | Outcome:
        """The job's group, or why nobody can be judged by it."""
        try:
            group = self._groups.ready(job, phases)
        except NotSendable as error:
            self._groups.end()
            return self._groups.unopened.keep(job.group, faults.unsendable(error, Status.INVALID_REFERENCE))
        return group.fault or group

    def _judged(
        self,
        job: Job,
        build: BuildResult,
        group: OpenGroup,
        runner_and_end: tuple[Child, socket.socket],
        phases: JobPhases,
        how: dict[str, Any],
    ) -> tuple[Verdict | None, int | None]:
        """The judge's verdict, if one came in time, and how the runner ended, if it did by itself."""
        runner, its_end = runner_and_end
        verdict: Verdict | None = None
        try:
            verdict = group.judge.ask(
                Evaluate(
                    candidate=_source(job, build),
                    runner_pid=runner.pid,
                    profiled=self._profiled(job),
                    **how,
                ),
                Verdict,
                self._config.limits.total_s,
                handed=its_end,
                report_phase=phases.report,
            )
            phases.judged(group.judge.spent_s())
        except (PeerGone, ProtocolError) as error:
            raise losses.judge_lost(group.judge.child, error) from error
        except DeadlineExceeded:
            phases.judged(group.judge.spent_s())
            # Which of the two hangs cannot be told from outside; neither is kept.
            self._groups.end()
        # A runner that went away by itself gets a moment to be reaped, so that its own exit code is seen; one that the
        # judge has hung up on, a moment to write what it printed.
        gone = verdict is not None and verdict.ending.runner == "gone"
        return verdict, runner.wait(2.0 if gone else LAST_WORDS_S)

    def _outcome(self, verdict: Verdict, group: OpenGroup, runner: Child, exit_code: int | None) -> Outcome:
        """The verdict's outcome; if the process died or hung, with the cause that only the supervisor can see."""
        outcome = verdict.outcome
        if verdict.ending.runner == "gone":
            if (ended := group.baseline.wait(REAP_S)) is not None:
                # The judge has hung up on the candidate, too. What is killed for its memory may be so a moment after
                # its problem was opened.
                phase = "a call beside a candidate"
                raise baseline_lost(group.baseline, ended, phase, self._config.limits, opening=False)
            outcome = losses.death(runner, exit_code, verdict.ending.phase)
        if verdict.ending.runner == "hung":
            outcome = losses.timed_out(outcome, runner)
        if not verdict.ending.baseline_ok or faults.lacks_room(outcome) or group.baseline.wait(0.0) is not None:
            # Where a burst broke off, judge and baseline are no longer in step.
            self._groups.end()
        return outcome

    def _profiled(self, job: Job) -> bool:
        """Baselines are not profiled: their kernels are PyTorch's."""
        return not job.candidate.baseline and self._config.provenance.profile


def _source(job: Job, build: BuildResult) -> CandidateSource:
    if job.candidate.baseline:
        return reference(job, job.candidate.baseline)
    return CandidateSource(
        path=str(job.candidate.path.resolve()),
        entries=ENTRIES,
        libraries=build.libraries,
        failures=build.failures,
        unconstructed=build.unconstructed,
    )
