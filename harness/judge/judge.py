"""The judge: owns the reference, the seeds, the inputs, the expected outputs, the comparison and the clock.

Trusted. It never imports a candidate; what it knows of one comes as messages and as tensors in shared memory. It serves
one problem (at one variant and precision) for as long as its supervisor asks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch

from harness.config import TimingConfig
from harness.errors import AssayError
from harness.judge import deadlines, measurement, planning
from harness.judge.bench import Surroundings, WrongAnswer
from harness.judge.examiner import Examiner, InvalidReference
from harness.judge.freezer import Freezer
from harness.judge.host_link import HostLink
from harness.judge.link import Link, RunnerFailed
from harness.judge.reference import Reference
from harness.judge.start_watch import StartWatch
from harness.machine.card import Card, Watch
from harness.machine.host_card import HostCard
from harness.machine.nvml_card import NvmlCard
from harness.oracle.verdict import Finding
from harness.records import Outcome, Status
from harness.roofline import ceilings
from harness.timing.company import Alone
from harness.timing.sampling import Side
from harness.wire import faults
from harness.wire.channel import Channel, DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.messages import (
    CandidateSource,
    Evaluate,
    FromRunner,
    Open,
    Opened,
    Phase,
    Probe,
    Probed,
    Retime,
    Retimed,
    ToJudge,
    Verdict,
)


def main(channel_fd: int) -> None:
    """Serve the supervisor until it hangs up: one Open, then any number of Evaluate and Retime; a Probe at any time."""
    channel = Channel.from_fd(channel_fd, ToJudge)
    try:
        judge: Judge | None = None
        while True:
            request, fds = channel.receive(None)
            if isinstance(request, Probe):
                channel.send(probe(request))
            elif isinstance(request, Open):
                judge = Judge(request, channel)
                channel.send(judge.open(fds[0]))
            elif judge is not None and isinstance(request, Retime):
                channel.send(judge.retime())
            elif judge is not None:
                channel.send(judge.evaluate(request, fds[0]))
    except PeerGone:
        pass


def probe(request: Probe) -> Probed:
    """A trivial computation on the device, which takes its time or fails where something is wrong with it."""
    try:
        total = torch.ones(1 << 10, device=request.device).sum().item()
    except RuntimeError as error:
        return Probed(fault=str(error).partition("\n")[0])
    return Probed(fault="" if total == 1 << 10 else f"the sum of {1 << 10} ones is {total}")


class Ended(AssayError):
    """A runner's evaluation is over before it was timed; the verdict says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.outcome.message)
        self.verdict = verdict


class Judge:
    """One problem, its baseline runner, and the verdicts on its candidates."""

    def __init__(self, request: Open, channel: Channel) -> None:
        self._request = request
        self._channel = channel
        self._device = torch.device(request.device)
        self._limits = request.limits
        self._timing = request.timing
        self._examiners: dict[tuple[str, ...], Examiner] = {}
        self._start_watch = StartWatch()
        self._call_limit = "limits.call_s"

    def open(self, baseline_fd: int) -> Opened:
        """Load the reference and prove that it can be judged by: its baseline runner must agree with it."""
        try:
            if self._device.type == "cuda":
                torch.cuda.set_device(self._device)
            self._phase("ceilings")
            self._surroundings = self._look_around()
            self._phase("reference")
            request = self._request
            self._reference = Reference(request.problem, request.precision, self._device, request.seed)
            self._state = {name: tensor.clone() for name, tensor in self._reference.state().items()}
            self._plan = planning.plan(self._reference, self._timing, self._limits.total_s)
            call_s = deadlines.burst_s(self._plan.call_s, self._plan.most_calls, self._limits.call_s)
            # Where the reference's own time is the bound, a larger limit changes nothing.
            self._call_limit = "limits.call_s" if call_s == self._limits.call_s else ""
            self._limits = msgspec.structs.replace(self._limits, call_s=call_s)
            self._phase("expectation")
            self._examiner(request.baseline)
        except InvalidReference as error:
            fault = Outcome(status=Status.INVALID_REFERENCE, reason=error.reason, message=str(error))
            return Opened(fault=fault)
        except (Exception, SystemExit) as error:
            # A problem's file may end its process where it finds no card.
            traceback.print_exc()
            path = Path(self._request.problem.path)
            return Opened(fault=faults.of_problem(error, path, self._request.why_no_cuda))
        self._phase("baseline")
        self._baseline = self._connect(baseline_fd, request.runner_pid)
        try:
            self._admit(request.baseline, self._baseline, {})
            with self._watched(request.baseline, "call", self._call_limit):
                self._baseline.learn_start(self._plan.example)
                self._phase("baseline alone")
                self._before = measurement.before(*self._of_baseline())
        except Ended as end:
            return _no_baseline(end.verdict)
        return Opened()

    def evaluate(self, request: Evaluate, candidate_fd: int) -> Verdict:
        """Load, check and time one candidate; the verdict's `runner` tells the supervisor what to look into."""
        started = time.monotonic()
        candidate = self._connect(candidate_fd, request.runner_pid)
        phases: dict[str, float] = {}
        try:
            first = self._admit(request.candidate, candidate, phases)
            with self._watched(request.candidate, "call", self._call_limit), _timed(phases, "evaluate"):
                verdict = self._measure(candidate, request, first)
        except Ended as end:
            verdict = end.verdict
        finally:
            candidate.close()
        phases = {**verdict.phases_s, **phases, "judge": time.monotonic() - started}
        return msgspec.structs.replace(verdict, phases_s={name: round(value, 4) for name, value in phases.items()})

    def retime(self) -> Retimed:
        """Time the baseline alone again, and go by that from now on if it is slower."""
        self._phase("baseline alone")
        now = self._time_alone()
        slower = self._before.alone.slower(now)
        if slower:
            self._before = dataclasses.replace(self._before, alone=now)
        return Retimed(slower=slower)

    def _connect(self, fd: int, pid: int) -> Link:
        """The judge's end of a runner that has been started."""
        return self._link(Channel(socket.socket(fileno=fd), FromRunner), Freezer(pid))

    def _admit(self, source: CandidateSource, runner: Link, phases: dict[str, float]) -> Finding:
        """Construct a runner's class, timed in `phases`, and check its first call. Raises Ended where it is wrong."""
        self._phase("load")
        reference, plan = self._reference, self._plan
        with self._watched(source, "load", "limits.load_s"), _timed(phases, "load"):
            ready = runner.prepare(
                source, self._request.precision, reference.init_args, reference.init_seed, self._state
            )
            runner.reserve(plan.most_calls, plan.example.inputs, plan.expected)
        self._phase("first call")
        with self._watched(source, "call", "limits.first_call_s"):
            first = self._examiner(source).first_call(runner, self._limits.first_call_s)
        if not first.passed:
            outcome = _with_unmatched(first.outcome(), ready.unmatched)
            raise Ended(Verdict(outcome=outcome, error_ratio=first.error_ratio))
        return first

    def _examiner(self, source: CandidateSource) -> Examiner:
        """One for each set of lower precisions that are allowed: the run's, and a baseline's own."""
        allow = tuple(sorted({*self._request.allow, *source.allow}))
        if allow not in self._examiners:
            self._examiners[allow] = Examiner(self._reference, allow, self._request.check, self._plan.call_bytes)
        return self._examiners[allow]

    def _look_around(self) -> Surroundings:
        """The device before any runner is on it. Our own processes are the zygote's children."""
        own = (os.getppid(),)
        card: Card = HostCard(own)
        if self._device.type == "cuda":
            torch.ones(1, device=self._device)
            card = NvmlCard(str(torch.cuda.get_device_properties(self._device).uuid), own)
        try:
            best = ceilings.load_or_measure(self._device, watch=Watch(card))
        except RuntimeError as error:
            print(f"no ceilings, and so no speed of light: {error}", file=sys.stderr)
            best = None
        return Surroundings(card, best)

    def _link(self, channel: Channel, freezer: Freezer) -> Link:
        arguments = (channel, freezer, self._device, self._limits, self._start_watch)
        if self._device.type == "cpu":
            return HostLink(*arguments, random=self._plan.random)
        # Imported where a card is, because cuda-bindings loads the driver.
        from harness.judge.cuda_link import CudaLink

        return CudaLink(*arguments, warm=self._timing.cache == "warm")

    def _measure(self, candidate: Link, request: Evaluate, first: Finding) -> Verdict:
        """The verdict on a candidate whose first call was right: time, with hard inputs in between, then a profile."""
        source = request.candidate
        self._phase("timing")
        examiners: dict[Side, Examiner] = {
            "candidate": self._examiner(source),
            "baseline": self._examiner(self._request.baseline),
        }
        links: dict[Side, Link] = {"candidate": candidate, "baseline": self._baseline}
        hard = examiners["candidate"].hard_inputs()
        verdict = measurement.measure(
            self._reference,
            examiners,
            links,
            self._plan,
            self._surroundings,
            self._timing,
            self._limits,
            self._before,
            hard,
            profiled=request.profiled,
        )
        warnings = hard.warnings
        weakness = examiners["candidate"].weakness()
        if weakness:
            warnings.append(f"weak_problem: {weakness}")
        if first.allowance:
            warnings.append(f"lower_precision: right only within the error of {first.allowance}, which this run allows")
        evidence = verdict.outcome.evidence | {"oracle": first.evidence, "stress_sets": hard.done}
        return msgspec.structs.replace(
            verdict,
            outcome=msgspec.structs.replace(verdict.outcome, evidence=evidence),
            error_ratio=first.error_ratio,
            warnings=[*warnings, *verdict.warnings],
            notes=[left_out] if (left_out := examiners["candidate"].left_out()) else [],
        )

    def _time_alone(self) -> Alone:
        """Of the baseline, when a candidate is gone; nothing where that fails, which the next candidate tells."""
        try:
            return measurement.time_alone(*self._of_baseline(), self._before)
        except (WrongAnswer, RunnerFailed, PeerGone, DeadlineExceeded, ProtocolError) as error:
            print(f"the baseline alone: {error}", file=sys.stderr)
            return Alone()

    def _of_baseline(self) -> tuple[Reference, Examiner, Link, planning.Workload, Surroundings, TimingConfig]:
        """What the baseline is timed with by itself."""
        examiner = self._examiner(self._request.baseline)
        return self._reference, examiner, self._baseline, self._plan, self._surroundings, self._timing

    @contextlib.contextmanager
    def _watched(self, source: CandidateSource, phase: str, limit: str) -> Iterator[None]:
        """Raises Ended where the runner fails, dies, hangs, talks nonsense or answers wrongly meanwhile.

        `limit` is the config's key of the deadline that holds in it.
        """
        try:
            yield
        except WrongAnswer as error:
            right = error.outcome.status is not Status.INVALID_REFERENCE
            raise Ended(Verdict(outcome=error.outcome, baseline_ok=right)) from error
        except RunnerFailed as error:
            failed, name, why_no_cuda = error.failure, Path(source.path).name, self._request.why_no_cuda
            outcome = faults.classify(failed.phase, failed.exception, failed.text, name, failed.line, why_no_cuda)
            raise Ended(Verdict(outcome=outcome)) from error
        except PeerGone as error:
            outcome = Outcome(status=Status.CRASHED, reason="gone", message=f"the process went away in {phase}")
            raise Ended(Verdict(outcome=outcome, runner="gone", phase=phase)) from error
        except DeadlineExceeded as error:
            message = f"no answer in time in {phase}"
            outcome = Outcome(status=Status.TIMEOUT, reason=phase, message=message, limit=limit)
            raise Ended(Verdict(outcome=outcome, runner="hung")) from error
        except ProtocolError as error:
            message = f"the process broke the protocol in {phase}: {error}"
            outcome = Outcome(status=Status.REJECTED, reason="protocol", message=message)
            raise Ended(Verdict(outcome=outcome, runner="broke_protocol")) from error

    def _phase(self, name: str) -> None:
        self._channel.send(Phase(name=name))
        sys.stderr.flush()


@contextlib.contextmanager
def _timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Keep the seconds that this takes, however it ends."""
    begun = time.monotonic()
    try:
        yield
    finally:
        phases[name] = time.monotonic() - begun


def _no_baseline(verdict: Verdict) -> Opened:
    outcome = verdict.outcome
    message = f"the baseline, run by itself, ended {outcome.status} ({outcome.reason}): {outcome.message}"
    fault = msgspec.structs.replace(outcome, status=Status.INVALID_REFERENCE, reason="baseline", message=message)
    return Opened(fault=fault, runner=verdict.runner)


def _with_unmatched(outcome: Outcome, names: list[str]) -> Outcome:
    """A wrong answer with the candidate's parameters that are not the reference's: the usual reason is another name."""
    if not names:
        return outcome
    some = ", ".join(name[:60] for name in names[:4]) + (", ..." if len(names) > 4 else "")
    message = (
        f"{outcome.message}; {len(names)} of its parameters and buffers have no counterpart of the same name and shape "
        f"in the reference, and kept their own values: {some}"
    )
    return msgspec.structs.replace(outcome, message=message)
