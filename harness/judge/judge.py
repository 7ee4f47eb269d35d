"""The judge: owns the reference, the seeds, the inputs, the expected outputs, the comparison and the clock.

Trusted. It never imports a candidate; what it knows of one comes as messages and as tensors in shared memory. It serves
one problem (at one variant and precision) at a time, for as long as its supervisor asks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import secrets
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch
from torch.nn.parameter import is_lazy

from harness.catalog.baselines import CAPTURED
from harness.config import Limits
from harness.judge import endings, measurement, planning, trials
from harness.judge.bench import OpenProblem, Surroundings
from harness.judge.drawn_ahead import DrawnAhead, most_ahead
from harness.judge.endings import FAILURES, Ended, Refused
from harness.judge.examiner import Examiner, InvalidReference, give_back
from harness.judge.footprint import Footprint
from harness.judge.hard_turns import HardInputs
from harness.judge.reference import Reference, Weights
from harness.links.freezer import Freezer
from harness.links.host_link import HostLink
from harness.links.link import INPUT_PLACES, Link
from harness.links.start_watch import StartWatch
from harness.machine.card import Card, Watch
from harness.machine.card_turns import CardTurns
from harness.machine.host_card import HostCard
from harness.machine.nvml_card import NvmlCard
from harness.machine.pauses import pausing
from harness.oracle.controls import is_linear
from harness.oracle.verdict import Finding
from harness.records import Outcome, Status
from harness.roofline import ceilings
from harness.timing.company import Alone
from harness.timing.sampling import Side
from harness.wire import faults
from harness.wire.channel import Channel, PeerGone
from harness.wire.messages import (
    CandidateSource,
    Checks,
    DeviceTested,
    Ending,
    Evaluate,
    FromRunner,
    Leave,
    Left,
    Open,
    Opened,
    Phase,
    Ready,
    Retime,
    Retimed,
    TestDevice,
    ToJudge,
    Verdict,
    Waiting,
)


def main(channel_fd: int) -> None:
    """Serve the supervisor until it hangs up: one problem after the other, each from Open to Leave, with any number of
    Evaluate and Retime; TestDevice any time."""
    channel = Channel.from_fd(channel_fd, ToJudge)
    try:
        judge: Judge | None = None
        footprint: Footprint | None = None
        while True:
            request, fds = channel.receive(None)
            if isinstance(request, TestDevice):
                channel.send(tested(request))
            elif isinstance(request, Open):
                footprint = footprint or Footprint(torch.device(request.device))
                print(f"opens {request.problem.path}", file=sys.stderr)
                judge = Judge(request, channel, *fds[1:])
                channel.send(judge.open(fds[0]))
            elif isinstance(request, Leave):
                if judge is not None:
                    judge.close()
                judge = None
                channel.send(Left(changed=footprint.changed() if footprint else ""))
            elif judge is not None and isinstance(request, Retime):
                channel.send(judge.retime())
            elif judge is not None:
                channel.send(judge.evaluate(request, fds[0]))
    except PeerGone:
        pass


def tested(request: TestDevice) -> DeviceTested:
    """A trivial computation on the device, which takes its time or fails where something is wrong with it."""
    try:
        total = torch.ones(1 << 10, device=request.device).sum().item()
    except RuntimeError as error:
        return DeviceTested(fault=str(error).partition("\n")[0])
    return DeviceTested(fault="" if total == 1 << 10 else f"the sum of {1 << 10} ones is {total}")


UNJUDGED = Outcome(
    status=Status.LOAD_ERROR,
    reason="other_names",
    message="this problem cannot be judged with the ones and zeros that modules begin with: its parameters need the "
    "reference's names and shapes",
)
# By how much weights are drawn larger that hide what a softmax does, from and to; and by how much where the reference
# itself is hardly exact then.
LARGER, NOT_SO_LARGE = (3.0, 5.0), (1.5, 2.5)
NOTHING_TO_CHANGE = "hard inputs change floating-point tensors only, and there is none that differs from draw to draw"


class Judge:
    """One problem, its baseline runner, and the verdicts on its candidates.

    `turns_fd` is the file of the device's turns, where other judges are on it, too (machine.card_turns).
    """

    def __init__(self, request: Open, channel: Channel, turns_fd: int | None = None) -> None:
        self._request = request
        self._channel = channel
        self._device = torch.device(request.device)
        self._turns = CardTurns(turns_fd, self._settle, lambda begins: channel.send(Waiting(begins=begins)))
        self._limits = request.limits
        self._timing = request.timing
        self._examiners: dict[tuple[tuple[str, ...], Weights], Examiner] = {}
        self._start_watch = StartWatch()
        self._call_limit = "limits.call_s"
        self._others_bytes = 0

    def open(self, baseline_fd: int) -> Opened:
        """Load the reference and prove that it can be judged by: its baseline runner must agree with it."""
        with self._at_work():
            return self._opened(baseline_fd)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """With a share of the card, given up between two pieces of work where others wait for it."""
        with self._turns.shared(), pausing(self._turns.pause):
            yield

    def _opened(self, baseline_fd: int) -> Opened:
        try:
            if self._device.type == "cuda":
                torch.cuda.set_device(self._device)
            self._phase("ceilings")
            self._surroundings = self._look_around()
            self._phase("reference")
            request = self._request
            self._reference = Reference(request.problem, request.precision, self._device, request.seed)
            self._workload = self._planned()
            # Behind the first call, which gives lazy parameters their shapes.
            self._state = _copied(self._reference)
            call_s = planning.burst_s(self._workload.call_s, self._workload.most_calls, self._limits.call_s)
            # Where the reference's own time is the bound, a larger limit changes nothing.
            self._call_limit = "limits.call_s" if call_s == self._limits.call_s else ""
            self._limits = msgspec.structs.replace(self._limits, call_s=call_s)
            self._phase("expectation")
            try:
                self._examiner(request.baseline)
            except InvalidReference:
                if not self._reference.plain:
                    raise
                # Some problems can judge only with the weights that they begin with.
                self._reference = self._reference.with_weights(Weights.PLAIN)
                self._state = _copied(self._reference)
                self._examiner(request.baseline)
            self._sharpen(request.baseline)
            most = most_ahead(self._reference, self._workload)
            self._ahead = DrawnAhead(self._reference, most)
        except InvalidReference as error:
            fault = Outcome(status=Status.INVALID_REFERENCE, reason=error.reason, message=str(error))
            return Opened(fault=fault)
        except planning.DoesNotFit as error:
            return Opened(fault=planning.no_room(error, "while it opened the problem"))
        except (Exception, SystemExit) as error:
            # A problem's file may end its process where it finds no card.
            traceback.print_exc()
            if faults.memory_ran_out(error):
                return Opened(fault=planning.no_room(error, "while it opened the problem"))
            path = Path(self._request.problem.path)
            return Opened(fault=faults.of_problem(error, path, self._request.why_no_cuda))
        self._phase("baseline")
        self._baseline = self._connect(baseline_fd, request.runner_pid)
        try:
            examiner, _ = self._load(request.baseline, self._baseline, {})
            self._first_call(request.baseline, self._baseline, examiner)
            with self._ends_if_it_fails(request.baseline, "call", self._call_limit):
                self._baseline.learn_start(self._reference.draw())
                self._phase("baseline alone")
                self._before = measurement.measure_before(*self._baseline_alone())
        except Ended as ended:
            return _no_baseline(ended.ending, request.limits)
        except Exception as error:
            if not faults.memory_ran_out(error):
                raise
            return Opened(fault=planning.no_room(error, "while it tried the baseline"))
        self._others_bytes = self._held_by_others()
        return Opened()

    def _sharpen(self, baseline: CandidateSource) -> None:
        """Draw larger weights where drawn inputs do not tell a softmax, or another function, from a linear one: with
        those that modules begin with, its numbers may be so near to each other that attention can be had without any of
        it, and two layers as one.

        By how much is another number for each opening: who looks at weights to see when to be careful always has to be.
        """
        hidden = sum(map(is_linear, self._examiner(baseline).hidden))
        if not hidden:
            return
        before, of_it = (self._reference, self._state, self._examiners), self._request
        for least, most in (LARGER, NOT_SO_LARGE):
            factor = secrets.SystemRandom().uniform(least, most)
            try:
                larger = Reference(of_it.problem, of_it.precision, self._device, of_it.seed, factor)
                if not _has_others(larger, before[1]):
                    break
                self._reference, self._state, self._examiners = larger, _copied(larger), {}
                examiner = self._examiner(baseline)
            except (Exception, SystemExit) as error:
                # It was written for the weights that it draws, or there is no room for two of it.
                print(f"no larger weights: {error}", file=sys.stderr)
                continue
            if examiner.meaningful:
                if sum(map(is_linear, examiner.hidden)) < hidden:
                    return
                break
        self._reference, self._state, self._examiners = before

    def close(self) -> None:
        """Hang up on the baseline."""
        with self._turns.shared():
            self._baseline.close()
        self._turns.close()

    def evaluate(self, request: Evaluate, candidate_fd: int) -> Verdict:
        """Load, check and time one candidate; the ending's `runner` tells the supervisor what to look into."""
        started = time.monotonic()
        waited_s = self._turns.waited_s
        candidate = self._connect(candidate_fd, request.runner_pid)
        spent_s: dict[str, float] = {}
        with self._at_work():
            try:
                ending, checks = self._concluded(request, candidate, spent_s)
            finally:
                candidate.close()
        spent_s["judge"] = time.monotonic() - started
        if self._turns.waited_s > waited_s:
            spent_s["waiting"] = self._turns.waited_s - waited_s
        phases_s = {name: round(seconds, 4) for name, seconds in spent_s.items()}
        return Verdict(ending=ending, checks=checks, phases_s=phases_s)

    def _concluded(self, request: Evaluate, candidate: Link, spent_s: dict[str, float]) -> tuple[Ending, Checks]:
        """How the evaluation ended, whatever ended it, and what is known of the answers."""
        until = self._turns.clock() + trials.TIME_SHARE * self._limits.total_s
        examiner: Examiner | None = None
        ready: Ready | None = None
        # Until its first call no other process can open what a runner has on the card: nothing of it was exported.
        alone = self._turns.alone() if request.alone else contextlib.nullcontext()
        try:
            how = {"again": request.alone, "own_weights": request.own_weights}
            examiner, ready = self._load(request.candidate, candidate, spent_s, **how)
            examiner.explained = request.explained
            with alone:
                first = self._first_call(request.candidate, candidate, examiner)
                with self._ends_if_it_fails(request.candidate, "call", self._call_limit), _timed(spent_s, "evaluate"):
                    ending, checks = self._time(candidate, request, first, examiner, spent_s)
        except Ended as ended:
            # Not the exception itself: what it passed through would be kept, memory on the card among it.
            ending, checks = ended.ending, ended.checks
        except InvalidReference as error:
            fault = Outcome(status=Status.INVALID_REFERENCE, reason=error.reason, message=str(error))
            ending, checks = Ending(outcome=fault), Checks()
        except Exception as error:
            if not faults.memory_ran_out(error):
                raise
            traceback.print_exc()
            outcome = planning.no_room_beside(error, self._others_bytes, self._held_by_others())
            ending, checks = Ending(outcome=outcome), Checks()
        if examiner and ready:
            ending = self._with_weights(ending, examiner, ready)
        if examiner and ending.runner == "ok" and self._request.check.kernelbench:
            self._phase("KernelBench's rule")
            with _timed(spent_s, "kernelbench"):
                correct = trials.kernelbench_correct(self._reference, examiner, candidate, until, self._turns.clock)
            checks = msgspec.structs.replace(checks, kernelbench_correct=correct)
        return ending, checks

    def retime(self) -> Retimed:
        """Time the baseline alone again, and go by that from now on if it is slower."""
        self._phase("baseline alone")
        with self._at_work():
            now = self._time_alone()
        slower = self._before.alone.slower(now)
        if slower:
            self._before = dataclasses.replace(self._before, alone=now)
        return Retimed(slower=slower)

    def _connect(self, fd: int, pid: int) -> Link:
        """The judge's end of a runner that has been started."""
        return self._link(Channel(socket.socket(fileno=fd), FromRunner), Freezer(pid))

    def _load(
        self,
        source: CandidateSource,
        runner: Link,
        spent_s: dict[str, float],
        *,
        again: bool = False,
        own_weights: bool = False,
    ) -> tuple[Examiner, Ready]:
        """Construct a runner's class, timed in `spent_s`; what it is checked by, and what it says of its weights.
        `again`: it is the one that was evaluated last. `own_weights`: it keeps its own. Raises Ended."""
        self._phase("load")
        reference, plan = self._reference, self._workload
        give_back(self._device)
        with self._ends_if_it_fails(source, "load", "limits.load_s"), _timed(spent_s, "load"):
            # Of an examiner that has examined one already.
            renewing = [examiner.tried.renewing(again=again) for examiner in self._examiners.values()]
            ready = runner.prepare(
                source,
                self._request.precision,
                reference.init_args,
                reference.construction,
                self._state,
                reference.plain,
                itertools.chain.from_iterable(renewing),
                own_weights=own_weights,
            )
            # A name that the supervisor gave: whoever else runs by it is one of PyTorch's own ways, and trusted.
            places = 1 if source.baseline in CAPTURED else INPUT_PLACES
            runner.reserve(plan.most_calls, plan.inputs, plan.outputs, places)
        self._phase("first call")
        try:
            weights = Weights.OWN if own_weights else Weights.PLAIN if ready.plain else Weights.GIVEN
            return self._examiner(source, weights), ready
        except Exception as error:
            if not (ready.plain or own_weights) or faults.memory_ran_out(error):
                raise
            # What such weights do to the reference is told by no candidate's word.
            raise Refused(endings.with_unmatched(UNJUDGED, ready.unmatched)) from error

    def _first_call(self, source: CandidateSource, runner: Link, examiner: Examiner) -> Finding:
        """Check a runner's first call. Raises Ended where it is wrong."""
        with self._ends_if_it_fails(source, "call", "limits.first_call_s"):
            first = examiner.first_call(runner, self._limits.first_call_s)
        if not first.passed:
            raise Refused(first.outcome(), Checks(error_ratio=first.error_ratio))
        return first

    def _with_weights(self, ending: Ending, examiner: Examiner, ready: Ready) -> Ending:
        """A wrong answer, whenever it came, with what weights may have to do with it."""
        outcome = ending.outcome
        if outcome.status is not Status.INCORRECT:
            return ending
        outcome = endings.with_tables(
            endings.with_unmatched(outcome, ready.unmatched), self._reference.tables() & {*ready.lacks}
        )
        drawn_since = self._reference.differs(Weights.OWN) or bool(self._reference.construction.structured)
        may_be_why = outcome.reason == "mismatch" or outcome.reason.startswith("mismatch:exchanged")
        others = ready.changed or ((drawn_since or ready.as_begun) and may_be_why)
        if others and not examiner.why_plain:
            outcome = msgspec.structs.replace(outcome, message=f"{outcome.message}; {endings.DRAWN_WEIGHTS}")
        return msgspec.structs.replace(ending, outcome=outcome, changed_weights=ready.changed)

    def _examiner(self, source: CandidateSource, weights: Weights = Weights.GIVEN) -> Examiner:
        """One for each set of lower precisions that are allowed (the run's, and a baseline's own), and for who has
        which weights, as far as these differ."""
        if not self._reference.differs(weights):
            weights = Weights.GIVEN
        key = tuple(sorted({*self._request.allow, *source.allow})), weights
        if key not in self._examiners:
            reference = self._reference.with_weights(weights)
            self._examiners[key] = Examiner(reference, key[0], self._request.check, self._workload, self._turns)
        return self._examiners[key]

    def _look_around(self) -> Surroundings:
        """The device before any runner is on it. Our own processes are the zygote's children."""
        own = (os.getppid(),)
        card: Card = HostCard(own)
        if self._device.type == "cuda":
            torch.ones(1, device=self._device)
            card = NvmlCard(str(torch.cuda.get_device_properties(self._device).uuid), own)
        try:
            best = ceilings.load(self._device)
            if best is None:
                # Beside other lanes' work rates would be too low, and stay so.
                with self._turns.alone():
                    best = ceilings.load_or_measure(self._device, watch=Watch(card))
        except RuntimeError as error:
            print(f"no ceilings, and so no speed of light: {error}", file=sys.stderr)
            best = None
        return Surroundings(card, best, self._turns)

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _held_by_others(self) -> int:
        """Bytes of a card's memory that other processes hold; 0 on the CPU."""
        if self._device.type == "cpu":
            return 0
        free, total = torch.cuda.mem_get_info(self._device)
        return int(total - free - torch.cuda.memory_reserved(self._device))

    def _planned(self) -> planning.Workload:
        """What the reference's calls take. Raises as planning.workload does."""
        room = self._timing, self._limits.total_s, self._memory_bytes()
        try:
            return planning.workload(self._reference, *room)
        except Exception as error:
            as_begun = self._reference.with_weights(Weights.PLAIN)
            if as_begun is self._reference or isinstance(error, InvalidReference) or faults.memory_ran_out(error):
                raise
            # It may bear no other weights, as where a matrix has to be positive definite.
            workload = planning.workload(as_begun, *room)
            self._reference = as_begun
            return workload

    def _memory_bytes(self) -> int:
        """What of the device's memory may be used; 0 for all that is free."""
        limit_bytes = int(self._limits.device_memory_gb * 1e9)
        if self._request.memory_share == 1.0 or self._device.type == "cpu":
            return limit_bytes
        share_bytes = int(torch.cuda.get_device_properties(self._device).total_memory * self._request.memory_share)
        return min(limit_bytes, share_bytes) if limit_bytes else share_bytes

    def _link(self, channel: Channel, freezer: Freezer) -> Link:
        arguments = (channel, freezer, self._device, self._limits, bool(self._workload.late), self._start_watch)
        if self._device.type == "cpu":
            return HostLink(*arguments)
        # Imported where a card is, because cuda-bindings loads the driver. That takes its time, and no card.
        with self._turns.away():
            from harness.links.cuda_link import CudaLink

        return CudaLink(*arguments, warm=self._timing.cache == "warm", turns=self._turns)

    def _time(
        self, candidate: Link, request: Evaluate, first: Finding, examiner: Examiner, spent_s: dict[str, float]
    ) -> tuple[Ending, Checks]:
        """Time a candidate whose first call was right, with hard inputs in between, then profile it."""
        self._phase("timing")
        examiners: dict[Side, Examiner] = {
            "candidate": examiner,
            "baseline": self._examiner(self._request.baseline),
        }
        links: dict[Side, Link] = {"candidate": candidate, "baseline": self._baseline}
        hard = examiner.hard_inputs(request.without)
        hard.warnings += [
            f"stress: on inputs '{name}' it raised, and so was not tried on them" for name in request.without
        ]
        hard.factors.add("drawn", first)
        try:
            ending = measurement.evaluate(
                self._problem,
                examiners,
                links,
                self._before,
                self._limits,
                hard,
                spent_s,
                profiled=request.profiled,
                tell_precision=self._tell_precision,
            )
            refusal = hard.factors.refusal()
            if refusal is not None:
                raise Refused(refusal.outcome(), Checks(error_ratio=first.error_ratio))
        except Refused as wrong:
            # What is known of the other answers belongs to a wrong one, too; the error is its own, or none.
            known, is_wrong = _checks(first, hard, examiner), wrong.ending.outcome.status is Status.INCORRECT
            own = {"error_ratio": wrong.checks.error_ratio} if is_wrong else {}
            return wrong.ending, msgspec.structs.replace(known, **own)
        finally:
            spent_s["hard inputs"] = hard.spent_s
        return ending, _checks(first, hard, examiner)

    def _time_alone(self) -> Alone:
        """The baseline's times when a candidate is gone; none where that fails, which the next candidate tells."""
        try:
            return measurement.time_alone(*self._baseline_alone(), self._before)
        except (Refused, *FAILURES) as error:
            print(f"the baseline alone: {error}", file=sys.stderr)
            return Alone()

    @property
    def _problem(self) -> OpenProblem:
        return OpenProblem(self._reference, self._workload, self._surroundings, self._timing, self._ahead)

    def _baseline_alone(self) -> tuple[OpenProblem, Examiner, Link]:
        """What the baseline is timed with by itself."""
        return self._problem, self._examiner(self._request.baseline), self._baseline

    def _ends_if_it_fails(
        self, source: CandidateSource, phase: str, limit: str
    ) -> contextlib.AbstractContextManager[None]:
        return endings.ends_if_it_fails(source, phase, limit, self._request.why_no_cuda)

    def _phase(self, name: str) -> None:
        self._turns.pause()
        self._channel.send(Phase(name=name))
        sys.stderr.flush()

    def _tell_precision(self, half_width: float) -> None:
        reached = f"±{100 * half_width:.2g}% → {100 * self._timing.precision:.2g}%"
        self._channel.send(Phase(name="timing", reached=reached))


@contextlib.contextmanager
def _timed(spent_s: dict[str, float], name: str) -> Iterator[None]:
    """Keep the seconds that this takes, however it ends."""
    begun = time.monotonic()
    try:
        yield
    finally:
        spent_s[name] = time.monotonic() - begun


def _copied(reference: Reference) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in reference.state().items()}


def _has_others(reference: Reference, before: dict[str, torch.Tensor]) -> bool:
    """Whether some weights of a reference are others than before; a lazy module's have no shape yet."""
    now = reference.state()
    if now.keys() != before.keys() or any(map(is_lazy, now.values())):
        return False
    return not all(torch.equal(now[name], before[name]) for name in now)


def _checks(first: Finding, hard: HardInputs, examiner: Examiner) -> Checks:
    """What is known of the answers of a candidate that has given all that it was asked for."""
    warnings = list(hard.warnings)
    if hard.lacking:
        why = hard.lacking if examiner.tried.changeable else NOTHING_TO_CHANGE
        warnings.append(f"no_hard_inputs: drawn inputs alone decided, because {why}")
    elif hard.few:
        warnings.append(f"few_hard_inputs: {hard.few}")
    if weakness := examiner.weakness():
        warnings.append(f"weak_problem: {weakness}")
    if examiner.why_plain:
        warnings.append(f"plain_weights: {examiner.why_plain}")
    if first.allowance:
        warnings.append(f"lower_precision: right only within the error of {first.allowance}, which this run allows")
    return Checks(
        error_ratio=first.error_ratio,
        evidence={"oracle": first.evidence, "stress_sets": hard.done},
        warnings=warnings,
        notes=examiner.notes(),
    )


def _no_baseline(ending: Ending, limits: Limits) -> Opened:
    outcome = ending.outcome
    if outcome.status is Status.HARNESS_ERROR:
        return Opened(fault=outcome)
    message = f"the baseline, run by itself, ended {outcome.status} ({outcome.reason}): {outcome.message}"
    if outcome.status is Status.INCORRECT:
        message += "; does the reference keep a state that changes with each call?"
    if outcome.limit:
        message = faults.too_small(outcome.limit, limits, message)
    fault = msgspec.structs.replace(outcome, status=Status.INVALID_REFERENCE, reason="baseline", message=message)
    return Opened(fault=fault, runner=ending.runner)
