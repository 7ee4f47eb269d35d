"""What was lost, killed or slow in an evaluation, and whether that was the candidate's doing. No torch."""

from __future__ import annotations

from pathlib import Path

from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device
from harness.processes.nursery import NoProcess
from harness.records import Outcome
from harness.supervise import disk, losses
from harness.supervise.builds import KILLED, BuildResult
from harness.supervise.device_check import DeviceCheck
from harness.supervise.dialogue import JobPhases
from harness.supervise.evaluation import Evaluator
from harness.supervise.groups import Groups
from harness.supervise.losses import ProcessLost
from harness.supervise.recording import Conclusion
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import Retime, Retimed


class SecondChance:
    """Has jobs evaluated, and once more where that may change the outcome.

    What was lost or killed in an evaluation is replaced, and the evaluation repeated once. Then it is the candidate's
    doing: it alone was there both times. It is repeated once, too, where the baseline was slow beside the candidate
    and still is without it. A baseline that was wrong beside the candidate, and a fresh one is not without it, was
    spoilt: runners' outputs can be opened by every process on a card. Where the disk below `scratch` was full, that
    may have been another's doing.
    """

    def __init__(
        self, evaluator: Evaluator, groups: Groups, device: Device, config: Config, check: DeviceCheck, scratch: Path
    ) -> None:
        self._scratch = scratch
        self._evaluator = evaluator
        self._groups = groups
        self._device = device
        self._config = config
        self._device_check = check

    def conclude(self, job: Job, build: BuildResult, phases: JobPhases) -> Conclusion:
        """Evaluate the job, once more if that may change the outcome, and return how it ended."""
        lost: list[ProcessLost] = []
        slower: list[str] = []
        full: list[str] = []
        while True:
            again = [f"evaluated_again: {why}" for why in (*lost, *slower, *full)]
            try:
                outcome, verdict = self._evaluator.once(job, build, phases)
                if verdict and not verdict.ending.baseline_ok and self._right_by_itself(job, phases):
                    return Conclusion(outcome=losses.spoiled_by(verdict), again=again)
                if verdict and verdict.ending.slowed and not slower:
                    if self._slower_by_itself(phases):
                        slower.append("the baseline had become slower by itself")
                        continue
                    if self._device.kind == "cpu":
                        # Nothing tells who else had the cores for a moment.
                        slower.append("the baseline was slow beside it, and is not without it")
                        continue
                if disk.may_be_to_blame(outcome, self._scratch):
                    self._groups.end()
                    if full:
                        outcome = disk.blamed(outcome, self._scratch, alone=self._device.kind == "cpu")
                        return Conclusion(outcome=outcome, again=again)
                    full.append("the disk was full")
                    continue
                if outcome.reason != KILLED or lost:
                    return Conclusion(outcome=outcome, verdict=verdict, again=again)
                lost.append(ProcessLost("runner_killed", "the candidate's process was killed"))
            except OSError as error:
                if error.errno not in disk.ERRORS:
                    raise
                self._groups.end()
                return Conclusion(outcome=disk.full(self._scratch, error), again=again)
            except NoProcess as error:
                self._groups.end()
                return Conclusion(outcome=losses.not_started(error))
            except NotSendable as error:
                return Conclusion(outcome=faults.unsendable(error))
            except ProcessLost as error:
                self._groups.end()
                first = next((loss for loss in lost if loss.opening == error.opening), None)
                if first is not None:
                    return Conclusion(outcome=self._of_second_loss(job, first, error))
                lost.append(error)

    def _of_second_loss(self, job: Job, first: ProcessLost, second: ProcessLost) -> Outcome:
        if first.problems and second.problems and not self._device_check.fault():
            self._groups.unopened[job.group] = second.problems
            return second.problems
        return losses.of_second(job, first, second)

    def _slower_by_itself(self, phases: JobPhases) -> bool:
        """Whether the baseline is slower than at first now that the candidate is gone; the judge then goes by that."""
        group = self._groups.current
        if group is None:
            return False
        group.wake()
        try:
            return group.judge.ask(Retime(), Retimed, self._config.limits.total_s, report_phase=phases.report).slower
        except (PeerGone, ProtocolError, DeadlineExceeded):
            self._groups.end()
            return False

    def _right_by_itself(self, job: Job, phases: JobPhases) -> bool:
        """Whether a fresh baseline, its candidate being gone, gives the reference's own answers again and again."""
        return self._outputs_are_open() and self._groups.ready(job, phases).fault is None

    def _outputs_are_open(self) -> bool:
        """Whether other processes can write to what a runner returns."""
        return self._device.kind == "cuda"
