"""How the judge times a candidate against the baseline: the steps from warm-up to profile."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import msgspec

from harness.config import Limits
from harness.integrity import provenance
from harness.integrity.provenance import Profile
from harness.judge import appraisal, suspicions
from harness.judge.bench import Before, Bench, OpenProblem
from harness.judge.examiner import Examiner
from harness.judge.hard_turns import HardInputs
from harness.links.link import BurstReading, Link, RunnerFailed
from harness.records import Status
from harness.timing import burst_clock, statistics
from harness.timing.company import FEWEST, Alone, Usual
from harness.timing.fixed_cost import FixedCost
from harness.timing.sampling import Side
from harness.timing.stopping import StoppingRule
from harness.timing.suspicion import Suspicion
from harness.wire.channel import DeadlineExceeded, PeerGone
from harness.wire.messages import Ending

NULL_BURSTS = 30
# Readings that scatter by more than they are met something else on the machine: they are taken again, so often at most.
CALIBRATIONS = 3
# Each takes the way of the messages besides.
NULL_BURSTS_UNGATED = 9
# Bursts of the baseline, of each kind, before any candidate is there.
ALONE_BURSTS = 9
# Of calls so long that these take longer than this, there are fewer.
ALONE_S = 2.0
# A kernel takes no less of a stream's time.
LEAST_KERNEL_US = 2.0


def measure_before(problem: OpenProblem, examiner: Examiner, baseline: Link) -> Before:
    """What the baseline shows while no candidate is there. Raises Refused, and what Link raises."""
    # One wait for all of them: each takes less than a wait beside other lanes.
    with problem.surroundings.turns.alone():
        before = Before(_calibrated(baseline))
    if problem.reference.device.type == "cpu":
        bench = Bench(problem, {"baseline": examiner}, {"baseline": baseline}, before)
        bench.warm_up()
        with baseline.learning():
            usual = bench.usual("baseline", max(1, min(ALONE_BURSTS, int(ALONE_S / problem.workload.call_s))))
        unreliable = suspicions.bursts_unreliable(bench, usual)
        return dataclasses.replace(before, bursts_unreliable=unreliable, alone=Alone(ungated=_as_read(bench, usual)))
    with problem.surroundings.turns.alone():
        before = dataclasses.replace(before, ungated_us=_ungated_us(baseline))
    return dataclasses.replace(before, alone=time_alone(problem, examiner, baseline, before))


def time_alone(problem: OpenProblem, examiner: Examiner, baseline: Link, before: Before) -> Alone:
    """The baseline's times while no candidate is there, with and without the gate of a card."""
    bench = Bench(problem, {"baseline": examiner}, {"baseline": baseline}, before)
    bench.warm_up()
    # Calls that fill a burst by themselves take long to draw and to check, too.
    count = FEWEST if problem.workload.call_s >= problem.timing.burst_ms / 1e3 else ALONE_BURSTS
    gated = Usual([], [])
    if bench.clock.name == "device":
        gated = bench.usual("baseline", count)
        bench.give_up_gate()
        # As few as can be compared: only candidates that wait for the device are, and each is alone on the card.
        count = FEWEST
    return Alone(gated, _as_read(bench, bench.usual("baseline", count)))


def _as_read(bench: Bench, usual: Usual) -> Usual:
    """Its times as they are compared later: on the CPU with the fixed cost, which may not be taken off then."""
    if bench.clock.name != "host":
        return usual
    return usual.with_cost(bench.clock.fixed_cost.us, bench.clock.bursts["baseline"].calls)


def evaluate(
    problem: OpenProblem,
    examiners: dict[Side, Examiner],
    links: dict[Side, Link],
    before: Before,
    limits: Limits,
    hard: HardInputs,
    spent_s: dict[str, float],
    *,
    profiled: bool,
    tell_precision: Callable[[float], None],
) -> Ending:
    """Time a candidate that has passed its first call, with calls on `hard` inputs among the timed ones.

    `profiled`: with one more call at the end, of which the ending has the profile and `spent_s` the seconds.
    `tell_precision` hears how wide the interval is (`sampling.sample`). Raises Refused, and what the candidate's runner
    makes Link raise.
    """
    bench = Bench(problem, examiners, links, before, hard)
    rule = StoppingRule(
        precision=problem.timing.precision,
        budget_s=min(problem.timing.budget_s, limits.total_s),
        min_pairs=problem.timing.min_pairs,
        max_pairs=problem.timing.max_pairs,
    )
    bench.warm_up()
    bench.time_latency()
    samples = bench.sample(rule, tell_precision)
    batched, samples = suspicions.batching(bench, samples)
    quicker: Suspicion | None = None
    if batched:
        # In bursts of one call there is no company to gain from, whatever the reason was.
        in_company = samples.speedup(systematic=bench.clock.systematic)
        bench.one_call_a_burst()
        samples = bench.sample(rule, tell_precision)
        quicker = suspicions.quicker_alone(bench, in_company.hi, samples)
    slowed = suspicions.slow_baseline(bench, samples)
    batched = batched or before.bursts_unreliable
    waits = suspicions.own_wait(bench, samples)
    factor = min((one.evidence["factor"] for one in (slowed, waits, quicker) if one), default=1.0)
    found = [suspicion for suspicion in (batched, slowed, waits, quicker) if suspicion]
    timed_us = statistics.median(samples.candidate_us)
    profile: Profile | None = None
    doubts: list[str] = []
    if profiled:
        begun = time.monotonic()
        profile, doubts = _profile(bench, timed_us, limits.first_call_s)
        spent_s["profile"] = time.monotonic() - begun
    bench.clock.kernels["candidate"] = _kernels(profile, timed_us, bench.clock.kernels["baseline"])
    credited_us = samples.baseline_us if slowed else suspicions.credited_us(bench, samples)
    gain = suspicions.unseen_gain(bench, samples)
    appraised = appraisal.appraise(bench, samples, [factor * us for us in credited_us], factor, gain, found)
    passed = appraised.outcome.status is Status.PASSED
    return Ending(
        outcome=appraised.outcome,
        slowed=slowed is not None,
        figures=appraised.figures,
        profile=profile if passed else None,
        warnings=[*bench.warnings, *appraised.warnings, *(doubts if passed else [])],
    )


def _profiled(bench: Bench, side: Side, deadline_s: float) -> tuple[BurstReading | None, Profile]:
    """A profiled call of one side, with its profile. Raises Refused."""
    try:
        reading = bench.profiled(side, deadline_s)
    except (RunnerFailed, PeerGone, DeadlineExceeded) as error:
        return None, Profile(fault=f"the profiled call failed: {error}"[: provenance.LONGEST_TOLD])
    profile = reading.profile or Profile(fault=f"the {side}'s process sent no profile")
    if not profile.fault and not provenance.lists_time(profile, on_card=bench.on_card):
        profile = Profile(fault="the profile lists no time")
    return reading, profile


def _kernels(profile: Profile | None, timed_us: float, baseline: int) -> int:
    """How many kernels a call of the candidate runs: as its profile says, which only widens or narrows an interval; or
    else as many as the baseline's, as far as its time does for them."""
    if profile is not None and profile.launched:
        return sum(one.calls for one in profile.launched)
    return max(1, min(baseline, int(timed_us / LEAST_KERNEL_US)))


def _calibrated(baseline: Link) -> FixedCost:
    """What a burst of the trusted baseline costs that runs nothing."""
    found: list[FixedCost] = []
    while not found or (len(found) < CALIBRATIONS and found[-1].jitter_us > found[-1].us):
        # The first one meets cold code and cold memory.
        readings = [baseline.null_us() for _ in range(NULL_BURSTS + 1)][1:]
        found.append(burst_clock.calibrated(readings, on_card=baseline.device.type == "cuda"))
    return min(found, key=lambda cost: cost.smallest_us)


def _ungated_us(baseline: Link) -> float:
    """What a burst without the gate takes that runs nothing, on a card."""
    return statistics.median([baseline.null_us(gated=False) for _ in range(NULL_BURSTS_UNGATED)])


def _profile(bench: Bench, timed_us: float, deadline_s: float) -> tuple[Profile, list[str]]:
    """The profile of one more call of the candidate, and warnings; `timed_us` is what one takes. Raises Refused.

    Under a profiler a process may fail that does not otherwise: the baseline shows if that is the profiler's fault.
    """
    reading, profile = _profiled(bench, "candidate", deadline_s)
    if profile.fault:
        own = not _profiled(bench, "baseline", deadline_s)[1].fault
        return msgspec.structs.replace(profile, its_own_fault=own), []
    if reading is None or not reading.gated:
        # Without the gate, loading the profiler is in the judge's reading.
        return profile, []
    doubt = provenance.doubt(profile.launched, bench.one_call_us(reading), timed_us)
    return profile, [f"doubtful_profile: {doubt}"] if doubt else []
