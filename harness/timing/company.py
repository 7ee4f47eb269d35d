"""Is the baseline slower in a candidate's company than alone? A candidate gains by slowing what it is compared with.

A candidate that loads the machine cannot be told for sure from a machine that others load. So nobody is rejected: the
baseline's time alone is the one that counts, and the record says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.timing import statistics
from harness.timing.suspicion import Suspicion

# Of the time alone, what may come of clocks, caches and neighbours.
TOLERATED = 1.25
FEWEST = 5


def slow_baseline(alone_us: Sequence[float], together_us: Sequence[float], *, slack_us: float) -> Suspicion | None:
    """Evidence that the baseline takes longer, in microseconds a call, while the candidate's process is there.

    Both in bursts of as many calls. `slack_us` is granted beside TOLERATED and the intervals of both medians. The
    evidence's `factor` is by how much the baseline's times together have to be multiplied to be what they are alone.
    None with fewer than five readings.
    """
    if len(alone_us) < FEWEST or len(together_us) < FEWEST:
        return None
    alone, together = statistics.time_us(alone_us), statistics.time_us(together_us)
    if together.lo <= TOLERATED * alone.hi + slack_us:
        return None
    return Suspicion(
        "slow_baseline",
        f"the baseline takes {together.value:.1f} us beside this candidate and {alone.value:.1f} us alone; "
        "the speedup is over its time alone",
        {"alone_us": alone.value, "together_us": together.value, "factor": alone.value / together.value},
    )
