"""How long a burst may take: in proportion to what the reference needs, with the config's limit as the ceiling."""

from __future__ import annotations

# A candidate this many times slower than the reference is no candidate any more.
SLOWEST = 100.0
# Starting threads, loading kernels and a busy machine take their time, however short the work is.
SHORTEST_S = 10.0


def burst_s(reference_call_s: float, calls: int, limit_s: float) -> float:
    """Seconds for a burst of up to `calls` calls of which the reference needs `reference_call_s` each.

    Never more than `limit_s` (the config's `limits.call_s`).
    """
    return min(limit_s, max(SHORTEST_S, SLOWEST * reference_call_s * calls))
