"""How the judge times a candidate against the baseline: burst lengths, calibration, interleaved pairs, evidence."""

from __future__ import annotations

import dataclasses
import random
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from harness.config import Limits, TimingConfig
from harness.integrity import provenance
from harness.integrity.provenance import Profile
from harness.records import Outcome, Status, Timing
from harness.timing import bursts, claims, company, fixed_cost, light, statistics
from harness.timing.card import Card, Watch
from harness.timing.ceilings import cache_bytes
from harness.timing.fixed_cost import FixedCost
from harness.timing.light import Ceilings, Floor
from harness.timing.sampling import Reading as Sampled
from harness.timing.sampling import Samples, Side, sample
from harness.timing.stopping import StoppingRule
from harness.timing.suspicion import Suspicion
from harness.timing.work import Estimate, uncached
from harness.worker import values
from harness.worker.checking import Examiner
from harness.worker.link import Draw, Link, Reading, RunnerFailed
from harness.worker.messages import DeadlineExceeded, PeerGone, Verdict
from harness.worker.reference import Reference

NULL_BURSTS, HOST_NULL_BURSTS = 30, 10
# By how much a null burst may differ from one with work in it, behind the gate (seen: up to 3 us on an H200).
NULL_ERROR_US = 3.0
# Two processes running the same kernel differ by this for as long as they live: found with benchmarks/precision.py on
# an H200, as what the intervals needed in order to contain 1 when a candidate runs against itself.
PROCESS_US, PROCESS_SHARE = 0.18, 0.001
WARM_UP_BURSTS = 3
LATENCY_CALLS = 9
# Single calls of the baseline before any candidate is there.
ALONE_CALLS = 9
# A candidate this many times faster than the reference still gets bursts of the wanted duration.
HEADROOM = 8
# Share of the device's free memory that inputs, the judge's copies of them, and outputs may take up.
MEMORY_SHARE = 0.4
# Share of the last-level cache that inputs and outputs of a burst may take up, if they are to stay in it.
WARM_SHARE = 0.5
# Of each call: the runner's inputs, the judge's own, and as many outputs, for both sides.
COPIES = 4
HOST_MEMORY_BYTES = 2 << 30


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one reference call needs, found by trying: example inputs and output, its time, and the longest burst."""

    example: Draw
    expected: Any
    work: Estimate
    call_bytes: int
    memory_bytes: int
    most_calls: int
    call_s: float


@dataclass(frozen=True)
class Surroundings:
    """The device's state, to be watched, and what it can do at best (None where that could not be measured)."""

    card: Card
    ceilings: Ceilings | None


class WrongAnswer(Exception):
    """A timed call whose output is not right."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def plan(reference: Reference, timing: TimingConfig) -> Plan:
    """Try the reference: how large its values are, and how long it takes. Raises what the problem's code raises."""
    trial = reference.try_out()
    tensors = values.tensors((trial.draw.inputs, trial.output))
    call_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    memory_bytes = int(_free_bytes(reference.device) * MEMORY_SHARE) // COPIES
    if timing.cache == "warm" and reference.device.type == "cuda":
        memory_bytes = min(memory_bytes, int(cache_bytes(reference.device) * WARM_SHARE))
    longest = bursts.plan(
        trial.seconds * 1e6 / HEADROOM,
        target_us=timing.burst_ms * 1e3,
        call_bytes=call_bytes,
        memory_bytes=memory_bytes,
        max_calls=timing.max_calls_per_burst,
    )
    return Plan(
        example=trial.draw,
        expected=trial.output,
        work=trial.work,
        call_bytes=call_bytes,
        memory_bytes=memory_bytes,
        most_calls=longest.calls,
        call_s=trial.seconds,
    )


def alone_us(
    reference: Reference,
    examiner: Examiner,
    baseline: Link,
    plan: Plan,
    surroundings: Surroundings,
    timing: TimingConfig,
) -> list[float]:
    """Times of single calls of the baseline while no candidate is there. Raises WrongAnswer, and what Link raises."""
    bench = Bench(reference, {"baseline": examiner}, {"baseline": baseline}, plan, surroundings, timing)
    bench.warm_up()
    return bench.singles("baseline", ALONE_CALLS)


def measure(
    reference: Reference,
    examiners: dict[Side, Examiner],
    links: dict[Side, Link],
    plan: Plan,
    surroundings: Surroundings,
    timing: TimingConfig,
    limits: Limits,
    alone: list[float],
    *,
    profiled: bool,
) -> Verdict:
    """Time a candidate that has passed its first call; `alone` holds times of the baseline without it, in microseconds.

    `profiled`: with one more call at the end, of which the verdict has the profile. Raises what the candidate's runner
    makes Link raise.
    """
    bench = Bench(reference, examiners, links, plan, surroundings, timing)
    rule = StoppingRule(
        precision=timing.precision,
        budget_s=min(timing.budget_s, limits.total_s),
        min_pairs=timing.min_pairs,
        max_pairs=timing.max_pairs,
    )
    try:
        bench.warm_up()
        bench.time_latency()
        samples = bench.sample(rule)
        batched = bench.batching(samples)
        if batched:
            # In bursts of one call there is no company to gain from, whatever the reason was.
            bench.one_call_a_burst()
            samples = bench.sample(rule)
        slowed = bench.slow_baseline(alone, samples)
    except WrongAnswer as error:
        return Verdict(outcome=error.outcome, baseline_ok=error.outcome.status is not Status.INVALID_REFERENCE)
    if slowed:
        factor = slowed.evidence["factor"]
        samples = dataclasses.replace(samples, baseline_us=[value * factor for value in samples.baseline_us])
    verdict = bench.verdict(samples, [finding for finding in (batched, slowed) if finding])
    if not profiled or verdict.outcome.status is not Status.PASSED:
        return verdict
    begun = time.monotonic()
    try:
        profile, doubts = bench.profile(statistics.median(samples.candidate_us), limits.first_call_s)
    except WrongAnswer as error:
        return Verdict(outcome=error.outcome)
    phases = {"profile": time.monotonic() - begun}
    return msgspec.structs.replace(verdict, profile=profile, phases_s=phases, warnings=[*verdict.warnings, *doubts])


class Bench:
    """Both sides of a comparison, warmed up and calibrated."""

    def __init__(
        self,
        reference: Reference,
        examiners: dict[Side, Examiner],
        links: dict[Side, Link],
        plan: Plan,
        surroundings: Surroundings,
        timing: TimingConfig,
    ) -> None:
        self.rng = random.Random()
        self._reference = reference
        self._examiners = examiners
        self._links = links
        self._plan = plan
        self._ceilings = surroundings.ceilings
        self._watch = Watch(surroundings.card)
        self._timing = timing
        self._gated = reference.device.type == "cuda"
        self._most_calls = plan.most_calls
        self._bursts: dict[Side, bursts.BurstPlan] = {}
        self._single_us: dict[Side, float] = {}
        self._latency_us: dict[Side, float] = {}
        self._fixed: dict[int, FixedCost] = {}

    def warm_up(self) -> None:
        """Run every path once on the shapes at hand, find out if the gate can be used, and choose burst lengths."""
        for side in self._links:
            # As many calls as there will ever be, so that nothing is met for the first time behind the gate.
            self._burst(side, self._plan.most_calls, gated=False)
        if self._gated:
            self._most_calls = min(self._calls_behind_gate(side) for side in self._links)
            self._gated = self._most_calls > 0
            self._most_calls = self._most_calls or self._plan.most_calls
            self._fixed.clear()
        self._watch.look()
        for side in self._links:
            singles = [self._per_call(self._burst(side, 1), 1).judge_us for _ in range(WARM_UP_BURSTS)]
            self._single_us[side] = min(singles)
            plan = bursts.plan(
                self._single_us[side],
                target_us=self._timing.burst_ms * 1e3,
                call_bytes=self._plan.call_bytes,
                memory_bytes=self._plan.memory_bytes,
                max_calls=self._most_calls,
            )
            # On the CPU a length of its own would need a calibration of its own.
            shortest = plan.shortest if self._reference.device.type == "cuda" else plan.calls
            self._bursts[side] = bursts.BurstPlan(plan.calls, shortest)

    def time_latency(self) -> None:
        """On a card: single calls with the gate open, so that what the host does is in the reading."""
        if self._reference.device.type == "cpu":
            return
        sides: list[Side] = ["candidate", "baseline"]
        readings: dict[Side, list[float]] = {side: [] for side in sides}
        trusted = self._links["baseline"]
        fixed_us = statistics.median([trusted.null_us([self._plan.example], gated=False) for _ in range(LATENCY_CALLS)])
        for _ in range(LATENCY_CALLS):
            self.rng.shuffle(sides)
            for side in sides:
                readings[side].append(self._burst(side, 1, gated=False).judge_us - fixed_us)
        self._latency_us = {side: max(statistics.median(values), 0.0) for side, values in readings.items()}

    def one_call_a_burst(self) -> None:
        """Give up bursts of several calls, on both sides."""
        self._bursts = {side: bursts.BurstPlan(1, 1) for side in self._links}

    def sample(self, rule: StoppingRule) -> Samples:
        """Pairs until `rule` is content; raises WrongAnswer."""
        several = any(plan.calls > 1 for plan in self._bursts.values())
        probe = self._probe if several else None
        samples = sample(self._measure, rule, self.rng, probe=probe, systematic=self._systematic())
        # Enough single calls to judge by, however few pairs the sampling took.
        missing = bursts.FEWEST_SINGLES - len(samples.candidate_single_us) if several else 0
        return dataclasses.replace(
            samples,
            candidate_single_us=samples.candidate_single_us + self.singles("candidate", missing),
            baseline_single_us=samples.baseline_single_us + self.singles("baseline", missing),
        )

    def batching(self, samples: Samples) -> Suspicion | None:
        """Evidence that the candidate's calls gain by the company of others."""
        if self._bursts["candidate"].calls == 1:
            return None
        return bursts.batching(
            samples.candidate_single_us,
            samples.candidate_us,
            baseline_single_us=samples.baseline_single_us,
            baseline_burst_us=samples.baseline_us,
            cache_us=self._first_touch_us(),
        )

    def slow_baseline(self, alone: list[float], samples: Samples) -> Suspicion | None:
        """Evidence that the candidate's company slows the baseline down; raises WrongAnswer."""
        fixed = self._fixed_cost(1)
        # Bursts of one call are single calls.
        together = samples.baseline_single_us or samples.baseline_us
        together = together + self.singles("baseline", company.FEWEST - len(together))
        return company.slow_baseline(alone, together, slack_us=fixed.error_us + fixed.jitter_us)

    def singles(self, side: Side, count: int) -> list[float]:
        """Microseconds of so many single-call bursts; raises WrongAnswer."""
        return [self._probe(side).judge_us for _ in range(count)]

    def profile(self, timed_us: float, deadline_s: float) -> tuple[Profile, list[str]]:
        """Of one more call of the candidate, with warnings; `timed_us` is what one takes. Raises WrongAnswer.

        Under a profiler a process may fail that does not otherwise: that is a profile's fault, and nobody's reason.
        """
        try:
            reading = self._burst("candidate", 1, deadline_s=deadline_s, profiled=True)
        except (RunnerFailed, PeerGone, DeadlineExceeded) as error:
            return Profile(fault=f"the profiled call failed: {error}"[: provenance.LONGEST_TOLD]), []
        profile = reading.profile or Profile(fault="the candidate's process told nothing of it")
        if profile.fault or not reading.gated:
            # Without the gate, loading the profiler is in the judge's reading.
            return profile, []
        doubt = provenance.doubt(profile.launched, self._per_call(reading, 1).judge_us, timed_us)
        return profile, [f"doubtful_profile: {doubt}"] if doubt else []

    def verdict(self, samples: Samples, evidence_of: list[Suspicion]) -> Verdict:
        """Passed, with the speedup's interval, and what the times cannot explain as warnings."""
        fixed = self._fixed_cost(self._bursts["candidate"].calls)
        systematic = self._systematic()
        speedup = samples.speedup(systematic=systematic)
        unaccounted = claims.unaccounted(
            samples.candidate_us,
            samples.candidate_claimed_us,
            fixed_error_us=(fixed.error_us + fixed.jitter_us) / self._bursts["candidate"].shortest,
            baseline_judge_us=samples.baseline_us,
            baseline_claimed_us=samples.baseline_claimed_us,
        )
        candidate_us = statistics.median(samples.candidate_us)
        floor = self._floor()
        error_us = candidate_us * speedup.half_width + fixed.error_us / self._bursts["candidate"].shortest
        if self._faster_than_light(candidate_us, error_us):
            return Verdict(outcome=_too_fast(candidate_us, floor))
        suspicions = [*evidence_of, *([unaccounted] if unaccounted else [])]
        warnings = [f"{finding.word}: {finding.message}" for finding in suspicions]
        if floor is not None and light.faster_than_light(candidate_us, error_us, floor.us):
            warnings.append(
                f"under_the_floor: {candidate_us:.1f} us, where the reference's work takes {floor.us:.1f} us "
                f"({floor.bound}) at this device's best rates"
            )
        if samples.taken_back:
            warnings.append(f"noisy: {samples.taken_back} of {len(samples.candidate_us)} pairs are of doubtful quality")
        if self._clock_name() == "device_ungated":
            warnings.append("ungated: the candidate waits for the device itself, so times include launch latency")
        evidence: dict[str, Any] = {finding.word: finding.evidence for finding in suspicions}
        card = self._watch.summary()
        others = card.get("ranges", {}).get("others")
        if others and others[1] > 0:
            warnings.append(f"shared_device: up to {others[1]:g} other processes used the device meanwhile")
        return Verdict(
            outcome=Outcome(status=Status.PASSED, evidence=evidence),
            speedup=speedup.value,
            speedup_lo=speedup.lo,
            speedup_hi=speedup.hi,
            candidate_ms=candidate_us / 1e3,
            baseline_ms=statistics.median(samples.baseline_us) / 1e3,
            sol_fraction=light.sol_fraction(candidate_us, floor.us) if floor else None,
            warnings=warnings,
            timing=Timing(
                clock=self._clock_name(),
                calls_per_burst=self._bursts["candidate"].calls,
                baseline_calls_per_burst=self._bursts["baseline"].calls,
                fixed_us=round(fixed.median_us, 3),
                candidate_us=_rounded(samples.candidate_us),
                baseline_us=_rounded(samples.baseline_us),
                candidate_claimed_us=_rounded(samples.candidate_claimed_us),
                baseline_claimed_us=_rounded(samples.baseline_claimed_us),
                candidate_single_us=_rounded(samples.candidate_single_us),
                baseline_single_us=_rounded(samples.baseline_single_us),
                baseline_first=samples.baseline_first,
                systematic=systematic,
                candidate_latency_us=self._latency_us.get("candidate"),
                baseline_latency_us=self._latency_us.get("baseline"),
                floor_us=round(floor.us, 3) if floor else None,
                floor_bound=floor.bound if floor else "",
                floor_notes=list(self._plan.work.notes),
                card=card,
                stopped=str(samples.stopped),
                dropped=samples.dropped,
                elapsed_s=round(samples.elapsed_s, 3),
            ),
        )

    def _floor(self) -> Floor | None:
        return light.floor(self._plan.work.work, self._ceilings) if self._ceilings else None

    def _faster_than_light(self, candidate_us: float, error_us: float) -> bool:
        """Whether not even reading the inputs and writing the outputs, at the best rate seen, takes so little time."""
        if self._ceilings is None or self._clock_name() != "device":
            return False
        sure = uncached(self._plan.work.work, cache_bytes(self._reference.device), self._bursts["candidate"].shortest)
        return light.faster_than_light(candidate_us, error_us, light.floor(sure, self._ceilings).streamed_us)

    def _measure(self, side: Side) -> Sampled:
        calls = self._bursts[side].draw(self.rng)
        return self._per_call(self._burst(side, calls), calls)

    def _probe(self, side: Side) -> Sampled:
        return self._per_call(self._burst(side, 1), 1)

    def _systematic(self) -> float:
        """What no number of pairs averages away: the fixed cost's error, and what two processes differ by for good."""
        fixed = self._fixed_cost(self._bursts["candidate"].calls)
        baseline_us, candidate_us = self._single_us["baseline"], self._single_us["candidate"]
        burst_us = baseline_us * self._bursts["baseline"].calls, candidate_us * self._bursts["candidate"].calls
        if self._reference.device.type == "cpu":
            return fixed.systematic(*burst_us)
        return fixed.systematic(*burst_us) + PROCESS_SHARE + PROCESS_US / min(baseline_us, candidate_us)

    def _first_touch_us(self) -> float:
        """What only the first call of a burst waits for: weights, which later calls may find in the cache."""
        if self._ceilings is None:
            return 0.0
        return self._plan.work.work.resident_bytes / self._ceilings.bytes_per_s * 1e6

    def _burst(
        self,
        side: Side,
        calls: int,
        *,
        gated: bool | None = None,
        deadline_s: float | None = None,
        profiled: bool = False,
    ) -> Reading:
        """One burst on fresh inputs, every output checked."""
        draws = [self._reference.draw() for _ in range(calls)]
        gated = self._gated if gated is None else gated
        reading = self._links[side].burst(draws, gated=gated, deadline_s=deadline_s, profiled=profiled)
        refusal = self._examiners[side].burst(self._links[side], draws)
        if refusal is not None and side == "baseline":
            message = f"the baseline disagrees with the same reference in the judge: {refusal.message}"
            raise WrongAnswer(Outcome(status=Status.INVALID_REFERENCE, reason="unstable_reference", message=message))
        if refusal is not None:
            raise WrongAnswer(refusal.outcome())
        return reading

    def _calls_behind_gate(self, side: Side) -> int:
        """How many calls can be enqueued behind the closed gate: 0 for a candidate that waits for the device itself.

        A device queues about a thousand launches and then blocks, so one that launches many kernels a call gets fewer
        calls. The second try counts: the first may have loaded kernels, which blocks, too. One call is tried first,
        since a try that fails takes a second.
        """
        most = self._plan.most_calls

        def fits(calls: int) -> bool:
            return self._burst(side, calls).gated or self._burst(side, calls).gated

        if not fits(1):
            return 0
        return next((calls for calls in (most, most // 8) if calls > 1 and fits(calls)), 1)

    def _per_call(self, reading: Reading, calls: int) -> Sampled:
        lost_gate = "lost_gate" if self._gated and not reading.gated else ""
        return Sampled(
            judge_us=self._fixed_cost(calls).per_call(reading.judge_us, calls),
            claimed_us=reading.claimed_us / calls,
            unusable=lost_gate or self._watch.look(),
        )

    def _fixed_cost(self, calls: int) -> FixedCost:
        """What a burst costs that runs nothing. On the CPU it grows with the outputs that each call copies."""
        key = calls if self._reference.device.type == "cpu" else 0
        if key not in self._fixed:
            draws = [self._plan.example] * calls
            trusted = self._links["baseline"]
            count = NULL_BURSTS if key == 0 else HOST_NULL_BURSTS
            readings = [trusted.null_us(draws, gated=self._gated) for _ in range(count + 1)]
            # The first one meets cold code and cold memory.
            self._fixed[key] = fixed_cost.calibrate(readings[1:], model_error_us=NULL_ERROR_US if self._gated else 0.0)
        return self._fixed[key]

    def _clock_name(self) -> str:
        if self._reference.device.type == "cpu":
            return "host"
        return "device" if self._gated else "device_ungated"


def _free_bytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else HOST_MEMORY_BYTES


def _rounded(times_us: list[float]) -> list[float]:
    return [round(value, 4) for value in times_us]


def _too_fast(candidate_us: float, floor: Floor | None) -> Outcome:
    floor_us = floor.streamed_us if floor else 0.0
    message = (
        f"{candidate_us:.1f} us a call; moving its inputs and outputs alone takes {floor_us:.1f} us on this device"
    )
    evidence = {"candidate_us": candidate_us, "floor_us": floor_us}
    return Outcome(status=Status.REJECTED, reason="faster_than_light", message=message, evidence=evidence)
