"""What a comparison's times say against its candidate, or against the bursts that they were taken in."""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.judge.bench import Bench
from harness.machine.card import DISTURBED
from harness.timing import bursts, company, statistics
from harness.timing.company import Usual
from harness.timing.sampling import Samples
from harness.timing.suspicion import Suspicion

# Single calls of each side that settle what the first few say of batching, within so much time of both.
MORE_SINGLES, MORE_SINGLES_US = 30, 2e6


def batching(bench: Bench, samples: Samples) -> tuple[Suspicion | None, Samples]:
    """Evidence that the candidate's calls are cheaper in bursts than alone, and the samples that show it; raises
    Refused."""
    if bench.clock.bursts["candidate"].calls == 1:
        return None, samples
    found = _batching(bench, samples)
    if found is None:
        return None, samples
    # So do calls that were disturbed.
    both_us = max(1.0, bench.single_us["candidate"] + bench.single_us["baseline"])
    samples = bench.more_singles(samples, min(MORE_SINGLES, int(MORE_SINGLES_US / both_us)))
    return _batching(bench, samples), samples


def quicker_alone(bench: Bench, in_company: float, alone: Samples) -> Suspicion | None:
    """What a candidate gains in bursts of one call beyond the speedup that it had at the most `in_company`.

    It is timed alone because its calls take longer there. Who then reads better by it has hidden something in what a
    burst costs beside its calls, which is much of a short one. Only behind a card's gate: elsewhere waking is in it.
    """
    found = alone.speedup().value
    if bench.clock.name != "device" or found <= in_company:
        return None
    return Suspicion(
        "quicker_alone",
        f"{found:.2f}x by single calls, and at most {in_company:.2f}x in bursts of several, though its single calls "
        "take longer; the speedup is the latter",
        {"alone": found, "in_company": in_company, "factor": in_company / found},
    )


def unseen_gain(bench: Bench, samples: Samples) -> float:
    """By how many times the candidate may have gained by computing calls together, where `batching` sees nothing."""
    if not samples.candidate_single_us:
        return 1.0
    return bursts.unseen_gain(
        samples.candidate_single_us,
        samples.candidate_us,
        baseline_single_us=_usual_singles(bench, samples),
        baseline_burst_us=samples.baseline_us,
    )


def bursts_unreliable(bench: Bench, baseline: Usual) -> Suspicion | None:
    """Why bursts of several calls are unreliable, from the baseline's times; None if these do not show it."""
    if not bench.clock.fixed_cost.resolves(statistics.median(baseline.single_us)):
        return None
    return bursts.unreliable(baseline.single_us, baseline.burst_us)


def slow_baseline(bench: Bench, samples: Samples) -> Suspicion | None:
    """Evidence that the baseline is slower beside the candidate; raises Refused.

    None where other programs used the card: they slow it down, too, and the candidate beside it.
    """
    if _others_used_it(bench, samples):
        return None
    calls = bench.clock.bursts["baseline"].shortest
    together = samples.baseline_us + bench.burst_times("baseline", company.FEWEST - len(samples.baseline_us))
    within = _tolerance(bench, calls)
    # Without the gate the way of the messages is in all times, and longer beside another process. The interval has it.
    messages_us = bench.before.ungated_us / calls if bench.clock.name == "device_ungated" else 0.0
    return company.slow_baseline(
        within.alone_us,
        [us + within.paid_us for us in together],
        slack_us=within.slack_us + messages_us,
        tolerated=within.tolerated,
    )


def credited_us(bench: Bench, samples: Samples) -> list[float]:
    """The baseline's times of pairs as far as they count (`company.held_to`); as they are where other programs used the
    card."""
    if _others_used_it(bench, samples):
        return samples.baseline_us
    most = _most_us(bench, bench.clock.bursts["baseline"].shortest)
    return company.held_to(most, samples.baseline_us, samples.candidate_us)


def _others_used_it(bench: Bench, samples: Samples) -> bool:
    """On a card alone: on a CPU the kernel's own workers count as other programs, and work for whoever has them do so.
    There a candidate is evaluated again whose baseline was slow, as others may be gone or in the times alone by then.
    """
    return bench.on_card and bool(samples.taken_back) and DISTURBED in samples.dropped


def _most_us(bench: Bench, calls: int) -> float:
    """What a call of the baseline counts for beside a candidate at the most, in bursts of so many."""
    within = _tolerance(bench, calls)
    most = company.most_us(within.alone_us, slack_us=within.slack_us, tolerated=within.tolerated)
    return most - within.paid_us


class _Tolerance(NamedTuple):
    """The baseline's times alone, and how far those beside a candidate may be from them; microseconds a call."""

    alone_us: list[float]
    tolerated: float
    slack_us: float
    # In the times alone, and not in those beside a candidate.
    paid_us: float


def _tolerance(bench: Bench, calls: int) -> _Tolerance:
    fixed, alone = bench.clock.fixed_cost, bench.before.alone
    usual = (alone.gated if bench.clock.gated else alone.ungated).a_call(calls)
    on_cpu = bench.clock.name == "host"
    return _Tolerance(
        usual,
        company.TOLERATED_ON_CPU if on_cpu else company.TOLERATED,
        (fixed.error_us + fixed.jitter_us) / calls,
        fixed.us / calls if on_cpu else 0.0,
    )


def own_wait(bench: Bench, samples: Samples) -> Suspicion | None:
    """What a candidate that waits for the device itself gains by that alone."""
    if bench.clock.name != "device_ungated" or bench.problem.workload.late:
        return None
    gated_us = bench.before.alone.gated.a_call(bench.clock.bursts["baseline"].shortest)
    return company.own_wait(gated_us, samples.baseline_us, samples.candidate_us)


def _batching(bench: Bench, samples: Samples) -> Suspicion | None:
    on_cpu = bench.clock.name == "host"
    if on_cpu and samples.baseline_single_us:
        # By the baseline's times beside this candidate, they may be unreliable after all.
        lone = bursts_unreliable(bench, Usual(samples.baseline_single_us, samples.baseline_us))
        if lone is not None:
            return lone
    counts = {"candidate": len(samples.candidate_single_us), "baseline": len(samples.baseline_single_us)}
    for side, count in counts.items():
        if count < bursts.FEWEST_SINGLES:
            message = f"too few single calls of the {side} could be timed; timed by single calls"
            return Suspicion("one_call_bursts", message, {"singles": count})
    return bursts.batching(
        samples.candidate_single_us,
        samples.candidate_us,
        baseline_single_us=_usual_singles(bench, samples),
        baseline_burst_us=samples.baseline_us,
        # What a process takes to go on from its standstill is no measure of what a quick candidate gains.
        at_most=bursts.UNREMARKABLE_GAIN if on_cpu else math.inf,
        scatters=bench.clock.name == "device_ungated",
    )


def _usual_singles(bench: Bench, samples: Samples) -> list[float]:
    """The baseline's single calls: one that loads the device in the baseline's turns would excuse its own slow ones."""
    most = _most_us(bench, 1)
    return [min(us, most) for us in samples.baseline_single_us]
