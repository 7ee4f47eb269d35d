"""Compares the runner's claimed times with the judge's clock. The judge's times count; a difference is evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# In the passed records of results/*-h200 (`timing.candidate_claimed_us`) claims are below the judge's time by 0.29 to
# 0.32 us a call at 5 us, and by at most 2.1 % from 20 us on. Allowed is more than four times the worst.
ABSOLUTE_US = 1.5
RELATIVE = 0.10
# The share that the baseline's claims miss on the same protocol, this many times over, is explained whatever it is.
BASELINE_FACTOR = 2.0
LOW = 0.25


def unaccounted(
    judge_us: Sequence[float],
    claimed_us: Sequence[float],
    *,
    fixed_error_us: float = 0.0,
    baseline_judge_us: Sequence[float] = (),
    baseline_claimed_us: Sequence[float] = (),
) -> Suspicion | None:
    """Whether judge and runner disagree by more than an honest runner's clock can.

    Entry i of each list is one burst; times are microseconds a call. `fixed_error_us` is the error of the fixed cost
    a call (`FixedCost.error_us` and jitter over the burst's calls). Words: `unaccounted_time` (the runner claims less),
    `overclaimed_time` (it claims more than the judge saw pass) and `nonsense_claims` (most are no time at all). None
    where the difference is explained or nothing is claimed. Raises ValueError for lists of different lengths.

    The judge's time is the result in any case, so no candidate gains by a false claim; nor does it lose by one alone.
    """
    gaps = _gaps(judge_us, claimed_us)
    if all(math.isnan(claim) for claim in claimed_us):
        return None
    if len(gaps) * 2 <= len(claimed_us):
        share = 1 - len(gaps) / len(claimed_us)
        return Suspicion(
            "nonsense_claims", f"{share:.0%} of the runner's claimed times are not times", {"nonsense_share": share}
        )
    judged = statistics.median(judge_us)
    gap = _usual(gaps)
    # As shares: the fixed part of a gap is in the fixed cost, and a slow baseline must not excuse a fast candidate.
    claimed_shares = [claim / us for us, claim in zip(baseline_judge_us, baseline_claimed_us, strict=True)]
    missed_shares = _gaps([1.0] * len(claimed_shares), claimed_shares)
    usual_share = _usual(missed_shares) if missed_shares else 0.0
    allowed = ABSOLUTE_US + fixed_error_us + max(RELATIVE, BASELINE_FACTOR * abs(usual_share)) * judged
    if abs(gap) <= allowed:
        return None
    evidence = {
        "judge_us": judged,
        "gap_us": gap,
        "allowed_us": allowed,
        "baseline_share": usual_share,
        "share": gap / judged,
    }
    if gap > 0:
        return Suspicion(
            "unaccounted_time",
            f"the judge measured {judged:.2f} us a call, {gap:.2f} us more than the runner claims; a difference of "
            f"{allowed:.2f} us would be normal",
            evidence,
        )
    return Suspicion(
        "overclaimed_time",
        f"the runner claims {-gap:.2f} us a call more than the {judged:.2f} us that the judge measured; a difference "
        f"of {allowed:.2f} us would be normal",
        evidence,
    )


def _usual(gaps: Sequence[float]) -> float:
    """Their median, or, where that is a gap, their lower quartile: what else was on the device is in the larger ones,
    and explains nothing."""
    low, middle = (float(gap) for gap in np.quantile(gaps, [LOW, 0.5], method="lower"))
    return max(low, 0.0) if middle > 0 else middle


def _gaps(judge_us: Sequence[float], claimed_us: Sequence[float]) -> list[float]:
    """Judge's time less the claim, over bursts whose claim is a time."""
    pairs = zip(judge_us, claimed_us, strict=True)
    return [judged - claim for judged, claim in pairs if math.isfinite(claim) and claim >= 0]
