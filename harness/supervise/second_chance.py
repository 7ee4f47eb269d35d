"""What was lost, killed or slow in an evaluation, and whether that was the candidate's doing. No torch."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device
from harness.processes import memory_watch
from harness.processes.nursery import NoProcess
from harness.records import Outcome, Status
from harness.supervise import disk, losses
from harness.supervise.builds import BuildResult, was_killed
from harness.supervise.device_check import DeviceCheck
from harness.supervise.dialogue import JobPhases
from harness.supervise.evaluation import Evaluator
from harness.supervise.groups import Groups
from harness.supervise.lanes import Lanes
from harness.supervise.losses import ProcessLost
from harness.supervise.recording import Conclusion
from harness.wire import causes, faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import Retime, Retimed

# Of a lane that has the device for itself, while others wait: the candidate that is under way then is the last.
ALONE_S = 60.0
# Losses of different kinds, each of which may be anybody's doing.
MOST_LOST = 3
# What a shortage of memory has to pass in, before a second try.
SHORTAGE_S = 5.0
# What another candidate on the card can bring about, since it may open the memory of every process there.
MAY_BE_OTHERS = (Status.INCORRECT, Status.REJECTED, Status.CRASHED, Status.RUNTIME_ERROR)
# But for what does not come of a tensor's contents: an output's form, and what Python says of code.
ITS_OWN = frozenset(
    {
        *("wrong_shape", "wrong_dtype", "wrong_type", "wrong_device", "wrong_structure"),
        *("not_a_tensor", "tensor_subclass"),
        *("exception:TypeError", "exception:NameError", "exception:AttributeError"),
    }
)


class SecondChance:
    """Has jobs evaluated, and once more where that may change the outcome.

    What was lost or killed in an evaluation is replaced, and the evaluation repeated once. Where the same is lost again
    it is the candidate's doing: it alone was there both times. It is repeated once, too, where the baseline was slow
    beside the candidate and still is without it. A baseline that was wrong beside the candidate, and a fresh one is not
    without it, was spoilt: runners' outputs can be opened by every process on a card. Where the disk below `scratch`
    was full, that may have been another's doing.

    Beside other `lanes` a candidate fails, and slows the baseline, only if it does so again while nothing of theirs is
    on the card, and memory runs out only if it does so without them. Nor is anybody blamed for what is lost beside
    them, or the device given up: another's candidate may have taken all memory, or the device with it. A group that has
    no room beside them is put off: to have the others give up all that they hold, and open it once more, takes longer
    than a candidate does. When it is that group's turn, this lane keeps the device for itself from candidate to
    candidate.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        groups: Groups,
        device: Device,
        config: Config,
        check: DeviceCheck,
        scratch: Path,
        lanes: Lanes,
    ) -> None:
        self._lanes = lanes
        # The group that has the device for itself now, and since when.
        self._alone_with: tuple[str, ...] | None = None
        self._alone_since = 0.0
        self._turn = contextlib.ExitStack()
        self._scratch = scratch
        self._evaluator = evaluator
        self._groups = groups
        self._device = device
        self._config = config
        self._device_check = check

    @property
    def later(self) -> frozenset[tuple[str, ...]]:
        """Groups that had better have their turn when no others are left."""
        return frozenset(self._lanes.crowded) - {self._alone_with}

    def conclude(self, job: Job, build: BuildResult, phases: JobPhases) -> Conclusion | None:
        """Evaluate the job, once more if that may change the outcome, and return how it ended; None where its group has
        turned out to have no room beside other lanes, and is for `later`."""
        self._wait_for_room()
        if self._alone_with != job.group:
            self.rest()
        if self._alone_with is None and job.group not in self._lanes.crowded:
            with self._lanes.together():
                found = self._beside_others(job, build, phases)
            if found and (self._lanes.count == 1 or not _lacked_memory(found.outcome)):
                return found
            if found and faults.lacks_room(found.outcome):
                self._lanes.crowded.add(job.group)
                return None
        if self._alone_with is None:
            self._be_alone(job, phases)
        try:
            return self._concluded(job, build, phases)
        finally:
            late = time.monotonic() - self._alone_since > ALONE_S and self._lanes.others_wait
            if late or job.group not in self._lanes.crowded:
                self.rest()

    def device_fault(self) -> str:
        """What is wrong with the device, without the other lanes; empty where it still computes."""
        fault = self._device_check.fault()
        if not fault or self._lanes.count == 1 or self._alone_with is not None:
            return fault
        with self._lanes.alone():
            return self._device_check.fault()

    def _beside_others(self, job: Job, build: BuildResult, phases: JobPhases) -> Conclusion | None:
        """As `_concluded`; None where processes were lost again, beside other lanes."""
        try:
            return self._concluded(job, build, phases)
        except ProcessLost:
            return None

    def _be_alone(self, job: Job, phases: JobPhases) -> None:
        phases.report("waiting for the other lanes")
        self._turn.enter_context(self._lanes.alone())
        self._alone_with, self._alone_since = job.group, time.monotonic()
        self._groups.memory_share = 1.0

    def rest(self) -> None:
        """Give the device back to the other lanes, if this one has it for itself."""
        if self._alone_with is None:
            return
        self._alone_with = None
        self._groups.memory_share = self._lanes.memory_share
        self._groups.end()
        self._turn.close()

    def _concluded(self, job: Job, build: BuildResult, phases: JobPhases) -> Conclusion:
        """Raises ProcessLost where that happens again beside other lanes."""
        with_others = self._lanes.count > 1 and self._alone_with is None
        lost: list[ProcessLost] = []
        slower: list[str] = []
        crowded: list[str] = []
        full: list[str] = []
        beside: Outcome | None = None
        others_fill_it = False
        began_s = time.monotonic()
        while True:
            again = [f"evaluated_again: {why}" for why in (*lost, *slower, *crowded, *full)]
            try:
                is_first = with_others and not (again or beside)
                outcome, verdict = self._evaluator.once(
                    job, build, phases, alone=bool(again or beside), explained=not is_first
                )
                if is_first and _may_be_others(outcome):
                    beside = outcome
                    continue
                if with_others and not again and verdict and verdict.ending.slowed:
                    # Who slowed it is not known, and only the baseline's times would be put right.
                    crowded.append("the baseline was slow beside it and other candidates")
                    continue
                if beside and outcome.status is not beside.status:
                    said = f"{beside.status} ({beside.reason})" if beside.reason else beside.status
                    again.append(f"evaluated_again: beside other candidates it was {said}")
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
                    self._wait_for_room()
                    if full:
                        outcome = disk.blamed(outcome, self._scratch, others=others_fill_it)
                        return Conclusion(outcome=outcome, again=again)
                    full.append("the disk was full")
                    others_fill_it = self._others_fill_it()
                    continue
                short = faults.is_short_of_memory(outcome)
                if not (was_killed(outcome) or short):
                    return Conclusion(outcome=outcome, verdict=verdict, again=again)
                said = "the machine ran out of memory" if short else "the candidate's process was killed"
                loss = ProcessLost(causes.SHORTAGE if short else "runner_killed", said)
                if _same(lost, loss):
                    return Conclusion(outcome=outcome, verdict=verdict, again=again)
                lost.append(loss)
                if short:
                    self._wait_for_memory()
            except OSError as error:
                if error.errno not in disk.ERRORS:
                    raise
                self._groups.end()
                if full:
                    return Conclusion(outcome=disk.full(self._scratch, error), again=again)
                self._wait_for_room()
                full.append("the disk was full")
                others_fill_it = self._others_fill_it()
            except NoProcess as error:
                self._groups.end()
                return Conclusion(outcome=losses.not_started(error))
            except NotSendable as error:
                return Conclusion(outcome=faults.unsendable(error))
            except ProcessLost as error:
                self._groups.end()
                if (first := _same(lost, error)) is not None:
                    if with_others:
                        raise
                    outcome = self._of_second_loss(job, first, error, time.monotonic() - began_s)
                    return Conclusion(outcome=outcome)
                lost.append(error)
                if error.reason == causes.SHORTAGE:
                    self._wait_for_memory()

    def _of_second_loss(self, job: Job, first: ProcessLost, second: ProcessLost, spent_s: float) -> Outcome:
        if first.problems and second.problems and not self._device_check.fault():
            if second.opening:
                # Otherwise a candidate was there both times, which may have a part in it: nobody else pays for that.
                self._groups.unopened.keep(job.group, second.problems, spent_s)
            return second.problems
        return losses.of_second(job, first, second)

    def _wait_for_room(self) -> None:
        """Until what an earlier candidate has left is removed."""
        disk.wait_for_room(self._scratch, lambda: self._lanes.closed)

    def _wait_for_memory(self) -> None:
        """For a shortage that passes soon, without what this lane has on its own part."""
        self._groups.end()
        until_s = time.monotonic() + SHORTAGE_S
        while memory_watch.nearly_out() and time.monotonic() < until_s and not self._lanes.closed:
            time.sleep(disk.LOOK_S)

    def _others_fill_it(self) -> bool:
        """Whether the disk is full without the candidate's files, which are gone; on a card there are builds
        meanwhile."""
        return self._device.kind == "cuda" and disk.is_full(self._scratch)

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


def _same(lost: list[ProcessLost], another: ProcessLost) -> ProcessLost | None:
    """The earlier loss that makes another one the second of its kind, or one too many of any."""
    kind = another.reason, another.opening
    same = next((loss for loss in lost if (loss.reason, loss.opening) == kind), None)
    return same or (lost[-1] if len(lost) >= MOST_LOST else None)


def _lacked_memory(outcome: Outcome) -> bool:
    return outcome.status is Status.OUT_OF_MEMORY or faults.lacks_room(outcome) or faults.is_short_of_memory(outcome)


def _may_be_others(outcome: Outcome) -> bool:
    return outcome.status in MAY_BE_OTHERS and outcome.reason not in ITS_OWN
