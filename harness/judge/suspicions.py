"""What a comparison's times say against its candidate, or against the bursts that they were taken in."""

from __future__ import annotations

import math

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


def bursts_unreliable(bench: Bench, baseline: Usual) -> Suspicion | None:
    """Why bursts of several calls are unreliable, from the baseline's times; None if these do not show it."""
    if not bench.clock.fixed_cost.resolves(statistics.median(baseline.single_us)):
        return None
    return bursts.unreliable(baseline.single_us, baseline.burst_us)


def slow_baseline(bench: Bench, samples: Samples) -> Suspicion | None:
    """Evidence that the baseline is slower beside the candidate; raises Refused.

    None where other programs used the device: they slow it down, too, and the candidate beside it.
    """
    if samples.taken_back and DISTURBED in samples.dropped:
        return None
    calls = bench.clock.bursts["baseline"].shortest
    fixed = bench.clock.fixed_cost
    together = samples.baseline_us + bench.burst_times("baseline", company.FEWEST - len(samples.baseline_us))
    usual = bench.before.alone.gated if bench.clock.gated else bench.before.alone.ungated
    tolerated = company.TOLERATED
    if bench.clock.name == "host":
        tolerated = company.TOLERATED_ON_CPU
        together = [us + fixed.us / calls for us in together]
    slack_us = (fixed.error_us + fixed.jitter_us) / calls
    return company.slow_baseline(usual.a_call(calls), together, slack_us=slack_us, tolerated=tolerated)


def own_wait(bench: Bench, samples: Samples) -> Suspicion | None:
    """What a candidate that waits for the device itself gains by that alone."""
    if bench.clock.name != "device_ungated" or bench.problem.workload.random:
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
    if len(samples.candidate_single_us) < bursts.FEWEST_SINGLES:
        message = "too few of its single calls could be timed; timed by single calls"
        return Suspicion("one_call_bursts", message, {"singles": len(samples.candidate_single_us)})
    return bursts.batching(
        samples.candidate_single_us,
        samples.candidate_us,
        baseline_single_us=samples.baseline_single_us,
        baseline_burst_us=samples.baseline_us,
        # What a process takes to go on from its standstill is no measure of what a quick candidate gains.
        at_most=bursts.UNREMARKABLE_GAIN if on_cpu else math.inf,
    )
