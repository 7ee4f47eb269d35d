"""How the judge times a candidate against the baseline: the order of things, from warm-up to verdict."""

from __future__ import annotations

import dataclasses
import time

import msgspec

from harness.config import Limits, TimingConfig
from harness.judge import appraisal
from harness.judge.bench import Before, Bench, Surroundings, WrongAnswer, calibrated, ungated_us
from harness.judge.examiner import Examiner, HardInputs
from harness.judge.link import Link
from harness.judge.planning import Workload
from harness.judge.reference import Reference
from harness.records import Status
from harness.timing import statistics
from harness.timing.company import Alone, Usual
from harness.timing.sampling import Side
from harness.timing.stopping import StoppingRule
from harness.wire.messages import Verdict

# Bursts of the baseline, of each kind, before any candidate is there.
ALONE_BURSTS = 9
# Of calls so long that these take longer than this, there are fewer.
ALONE_S = 2.0


def before(
    reference: Reference,
    examiner: Examiner,
    baseline: Link,
    plan: Workload,
    surroundings: Surroundings,
    timing: TimingConfig,
) -> Before:
    """What the baseline shows while no candidate is there. Raises WrongAnswer, and what Link raises."""
    found = Before(calibrated(baseline))
    if reference.device.type == "cpu":
        # Where a candidate stands still in others' turns, it cannot slow them.
        bench = Bench(reference, {"baseline": examiner}, {"baseline": baseline}, plan, surroundings, timing, found)
        bench.warm_up()
        with baseline.learning():
            usual = bench.usual("baseline", max(1, min(ALONE_BURSTS, int(ALONE_S / plan.call_s))))
        return dataclasses.replace(found, no_company=bench.no_company(usual))
    found = dataclasses.replace(found, ungated_us=ungated_us(baseline))
    return dataclasses.replace(
        found, alone=time_alone(reference, examiner, baseline, plan, surroundings, timing, found)
    )


def time_alone(
    reference: Reference,
    examiner: Examiner,
    baseline: Link,
    plan: Workload,
    surroundings: Surroundings,
    timing: TimingConfig,
    found: Before,
) -> Alone:
    """The baseline's times while no candidate is there, with and without the gate of a card."""
    bench = Bench(reference, {"baseline": examiner}, {"baseline": baseline}, plan, surroundings, timing, found)
    bench.warm_up()
    gated = Usual([], [])
    if bench.clock == "device":
        gated = bench.usual("baseline", ALONE_BURSTS)
        bench.give_up_gate()
    return Alone(gated, bench.usual("baseline", ALONE_BURSTS))


def measure(
    reference: Reference,
    examiners: dict[Side, Examiner],
    links: dict[Side, Link],
    plan: Workload,
    surroundings: Surroundings,
    timing: TimingConfig,
    limits: Limits,
    found: Before,
    hard: HardInputs,
    *,
    profiled: bool,
) -> Verdict:
    """Time a candidate that has passed its first call, with calls on `hard` inputs among the timed ones.

    `profiled`: with one more call at the end, of which the verdict has the profile. Raises what the candidate's runner
    makes Link raise.
    """
    bench = Bench(reference, examiners, links, plan, surroundings, timing, found, hard)
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
        batched, samples = bench.batching(samples)
        if batched:
            # In bursts of one call there is no company to gain from, whatever the reason was.
            bench.one_call_a_burst()
            samples = bench.sample(rule)
        slowed = bench.slow_baseline(samples)
    except WrongAnswer as error:
        return Verdict(outcome=error.outcome, baseline_ok=error.outcome.status is not Status.INVALID_REFERENCE)
    batched = batched or found.no_company
    waits = bench.own_wait(samples)
    factor = min((finding.evidence["factor"] for finding in (slowed, waits) if finding), default=1.0)
    verdict = appraisal.verdict(bench, samples, factor, [finding for finding in (batched, slowed, waits) if finding])
    verdict = msgspec.structs.replace(verdict, slowed=slowed is not None, warnings=[*bench.warnings, *verdict.warnings])
    if not profiled or verdict.outcome.status is not Status.PASSED:
        return verdict
    begun = time.monotonic()
    try:
        profile, doubts = bench.profile(statistics.median(samples.candidate_us), limits.first_call_s)
    except WrongAnswer as error:
        return Verdict(outcome=error.outcome)
    phases = {"profile": time.monotonic() - begun}
    return msgspec.structs.replace(verdict, profile=profile, phases_s=phases, warnings=[*verdict.warnings, *doubts])
