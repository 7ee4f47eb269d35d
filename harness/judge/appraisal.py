"""From times to an outcome: the speedup with its interval, and what the times cannot explain."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.judge.bench import Bench
from harness.records import Outcome, Status, Timing
from harness.roofline import light
from harness.roofline.light import Floor
from harness.timing import claims, statistics
from harness.timing.sampling import Samples
from harness.timing.suspicion import Suspicion
from harness.wire.messages import Figures

# An unseen gain beyond this has a warning.
TOLD_GAIN = 1.1


@dataclass(frozen=True)
class Appraisal:
    """The result of the times; without figures if they are impossible."""

    outcome: Outcome
    figures: Figures | None = None
    warnings: list[str] = field(default_factory=list)


def appraise(
    bench: Bench,
    samples: Samples,
    credited_us: list[float],
    factor: float,
    unseen_gain: float,
    suspicions: list[Suspicion],
) -> Appraisal:
    """Passed, with the speedup's interval, and what the times cannot explain as warnings; or rejected as impossible.

    The speedup is over `credited_us`, the baseline's times as far as they count: `factor` of those that were read, or
    less (company.py); its lower end allows for the `unseen_gain` of calls computed together. Everything else uses the
    times as they were read.
    """
    fixed, burst = bench.clock.fixed_cost, bench.clock.bursts["candidate"]
    credited = dataclasses.replace(samples, baseline_us=credited_us)
    speedup = credited.speedup(systematic=bench.clock.systematic)
    if samples.doubtful:
        # Others used the device throughout, which comes and goes for longer than a pair: twice as wide.
        speedup = credited.speedup(systematic=bench.clock.systematic + credited.speedup().half_width)
    unaccounted = claims.unaccounted(
        samples.candidate_us,
        samples.candidate_claimed_us,
        fixed_error_us=bench.clock.unclaimed_us,
        baseline_judge_us=samples.baseline_us,
        baseline_claimed_us=samples.baseline_claimed_us,
    )
    candidate_us = statistics.median(samples.candidate_us)
    error_us = candidate_us * speedup.half_width + fixed.error_us / burst.shortest
    least = bench.floors.least(burst.shortest)
    if least is not None and light.faster_than_light(candidate_us, error_us, least.streamed_us):
        return Appraisal(_too_fast(candidate_us, least))
    suspicions = [*suspicions, *([unaccounted] if unaccounted else [])]
    evidence: dict[str, Any] = {suspicion.word: suspicion.evidence for suspicion in suspicions}
    card = bench.card()
    floor = bench.floors.floor
    warnings = [
        *(f"{suspicion.word}: {suspicion.message}" for suspicion in suspicions),
        *_warnings(bench, samples, candidate_us, error_us, card),
        *_gains(samples, unseen_gain),
    ]
    figures = Figures(
        speedup=speedup.value,
        speedup_lo=speedup.lo / unseen_gain,
        speedup_hi=speedup.hi,
        candidate_ms=candidate_us / 1e3,
        baseline_ms=statistics.median(credited.baseline_us) / 1e3,
        sol_fraction=light.sol_fraction(candidate_us, floor.us) if floor else None,
        timing=_timing(bench, samples, credited_us, factor, card),
    )
    return Appraisal(Outcome(status=Status.PASSED, evidence=evidence), figures, warnings)


def _warnings(
    bench: Bench, samples: Samples, candidate_us: float, error_us: float, card: dict[str, Any]
) -> Iterator[str]:
    """Warnings about the circumstances of the speedup."""
    floor = bench.floors.floor
    if floor is not None and light.faster_than_light(candidate_us, error_us, floor.us):
        yield (
            f"under_the_floor: {candidate_us:.1f} us, where the reference's work takes {floor.us:.1f} us "
            f"({floor.bound}) at this device's best rates"
        )
    if sides := bench.clock.unresolved(samples):
        yield (
            f"below_resolution: {sides} bursts are too short to be told from empty ones; the times are upper bounds, "
            "and the interval includes that"
        )
    if samples.taken_back:
        wider = ", and the interval is twice as wide" if samples.doubtful else ""
        yield f"noisy: {samples.taken_back} of {len(samples.candidate_us)} pairs were disturbed{wider}"
    if bench.clock.why_ungated:
        yield f"ungated: {bench.clock.why_ungated}"
    others = card.get("ranges", {}).get("others")
    if others and others[1] > 0:
        yield f"shared_device: up to {others[1]:g} other processes used the device during the measurement"


def _gains(samples: Samples, unseen_gain: float) -> list[str]:
    if unseen_gain <= TOLD_GAIN:
        return []
    single, burst = statistics.lower_quartile(samples.candidate_single_us), statistics.median(samples.candidate_us)
    return [
        f"short_calls: a call takes {burst:.1f} us in a burst and {single:.1f} us alone, {unseen_gain:.2f} times what "
        "the baseline's lead one to expect; whether calls are computed together cannot be told from a first call's "
        "cost at that length, and the lower end of the interval allows for it"
    ]


def _timing(bench: Bench, samples: Samples, credited_us: list[float], factor: float, card: dict[str, Any]) -> Timing:
    """The record's description of how the times were taken."""
    floor = bench.floors.floor
    held = sum(counts < factor * us for us, counts in zip(samples.baseline_us, credited_us, strict=True))
    return Timing(
        clock=bench.clock.name,
        calls_per_burst=bench.clock.bursts["candidate"].calls,
        baseline_calls_per_burst=bench.clock.bursts["baseline"].calls,
        fixed_us=round(bench.clock.fixed_cost.us, 3),
        candidate_us=_rounded(samples.candidate_us),
        baseline_us=_rounded(samples.baseline_us),
        baseline_factor=factor,
        baseline_held=held,
        candidate_claimed_us=_rounded(samples.candidate_claimed_us),
        baseline_claimed_us=_rounded(samples.baseline_claimed_us),
        candidate_single_us=_rounded(samples.candidate_single_us),
        baseline_single_us=_rounded(samples.baseline_single_us),
        baseline_first=samples.baseline_first,
        systematic=bench.clock.systematic,
        candidate_latency_us=bench.latency_us.get("candidate"),
        baseline_latency_us=bench.latency_us.get("baseline"),
        floor_us=round(floor.us, 3) if floor else None,
        floor_bound=floor.bound if floor else "",
        floor_notes=bench.floors.notes,
        card=card,
        stopped=str(samples.stopped),
        dropped=samples.dropped,
        elapsed_s=round(samples.elapsed_s, 3),
    )


def _rounded(times_us: list[float]) -> list[float]:
    return [round(value, 4) for value in times_us]


def _too_fast(candidate_us: float, least: Floor) -> Outcome:
    message = (
        f"{candidate_us:.1f} us a call; moving its inputs and outputs alone takes {least.streamed_us:.1f} us "
        "on this device"
    )
    evidence = {"candidate_us": candidate_us, "floor_us": least.streamed_us}
    return Outcome(status=Status.REJECTED, reason="faster_than_light", message=message, evidence=evidence)
