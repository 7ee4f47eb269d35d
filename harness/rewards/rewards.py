"""Records as rewards for training: pure functions of one record; None is never the candidate's doing.

docs/rewards.md says what each scheme pays, and what it invites.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from harness.errors import BadValue, UsageError, nearest
from harness.records import HIDES, Record, Status, is_no_word

# Of a text that is no candidate, compiled or not.
NO_CANDIDATE = ("syntax_error", "unreadable", "nested_too_deeply", "missing_entry")

# What `stages` pays for the last stage that was reached; a share of right elements is paid between the last two.
COMPILED, LOADED, ALMOST_RIGHT, RIGHT, FASTER = 0.1, 0.2, 0.5, 0.6, 1.0


def reward(record: Record, scheme: str = "speedup", *, p: float = 1.0, own_kernels: bool = False) -> float | None:
    """What a candidate has earned by one of SCHEMES; 0 or more, and 0 for one that failed.

    None: the evaluation says nothing about the candidate; submit it again, or leave it out of the batch. `p` is the
    speedup that `fast_p` asks for. With `own_kernels` the reward is multiplied by the share of device time in the
    candidate's own kernels, 0 to 1; it is then None for a passed record without a profile, and 0 where the
    candidate alone fails when it is profiled. Raises UsageError for an unknown scheme, BadValue for a `p` that is
    negative or not finite.
    """
    if scheme not in SCHEMES:
        raise UsageError(f"unknown reward scheme '{scheme}'; {nearest(scheme, SCHEMES)}")
    if not (math.isfinite(p) and p >= 0):
        raise BadValue(f"p must be finite and not negative, not {p}")
    if is_no_word(record):
        return None
    earned = SCHEMES[scheme](record, p)
    if own_kernels and record.status is Status.PASSED:
        if any(text.startswith(f"{HIDES}:") for text in record.warnings):
            return 0.0
        return None if record.own_share is None else earned * min(1.0, max(0.0, record.own_share))
    return earned


def _speedup(record: Record, p: float) -> float:
    return record.speedup or 0.0


def _sure_speedup(record: Record, p: float) -> float:
    return record.speedup_lo or 0.0


def _log_speedup(record: Record, p: float) -> float:
    return math.log2(1.0 + (record.speedup or 0.0))


def _fast_p(record: Record, p: float) -> float:
    return float(record.speedup is not None and record.speedup > p)


def _stages(record: Record, p: float) -> float:
    if record.status is Status.PASSED:
        return FASTER if (record.speedup_lo or 0.0) > 1.0 else RIGHT
    if record.status is Status.REJECTED or (record.status is Status.LOAD_ERROR and record.reason in NO_CANDIDATE):
        return 0.0
    if record.status is Status.INCORRECT:
        share = record.evidence.get("share_wrong")
        known = isinstance(share, int | float) and 0 <= share <= 1
        return LOADED + (ALMOST_RIGHT - LOADED) * (1.0 - float(share)) if known else LOADED  # type: ignore[arg-type]
    # The judge's own phases, which no candidate's process has a say in.
    if "first call" in record.phases_s:
        return LOADED
    late = (record.status, record.reason) == (Status.TIMEOUT, "total")
    return COMPILED if "load" in record.phases_s or late else 0.0


SCHEMES: dict[str, Callable[[Record, float], float]] = {
    "speedup": _speedup,
    "sure_speedup": _sure_speedup,
    "log_speedup": _log_speedup,
    "fast_p": _fast_p,
    "stages": _stages,
}
"""Named schemes, each of a record that says something about its candidate, and `p`."""
