"""The rule applied: errors against a yardstick, and the finding that comes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle import rule
from harness.oracle.error import SHORTEST_ROW, Errors, rms, widened
from harness.oracle.yardstick import Signature, Yardstick
from harness.records import Outcome, Status


@dataclass(frozen=True)
class Finding:
    """The oracle's answer about one call.

    error: norm of the error in units of the true output's spread (its root mean square, where it is constant).
    error_ratio: that error over the reference's own (or over the rounding of the output, if larger). Both None where
    no floating output was compared. allowance: the lower precision without whose permission this would be a refusal.
    level: `full` against float64, `fast` against the reference's own output.
    """

    status: Status
    reason: str = ""
    message: str = ""
    error: float | None = None
    error_ratio: float | None = None
    allowance: str = ""
    level: str = "full"
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    def outcome(self) -> Outcome:
        """The same for the record."""
        return Outcome(status=self.status, reason=self.reason, message=self.message, evidence=self.evidence)


@dataclass(frozen=True)
class Limits:
    """The most that each measure of `error.Errors` may show."""

    norm: float
    scaled: float
    row: float
    worst: float

    def exceeded(self, errors: Errors) -> str:
        """The first measure over its limit (`broken` for misplaced NaN and infinities), or nothing."""
        if errors.broken:
            return "broken"
        for name in ("norm", "scaled", "row", "worst"):
            # Written so that a NaN exceeds.
            if not getattr(errors, name) <= getattr(self, name):
                return name
        return ""


def limits(yard: Yardstick, norm: float) -> Limits:
    """The limits of all measures, given that of the norm: the others are held to the same multiple of the
    reference's own. An output of a few elements has no worst among them that means more than the norm."""
    if yard.numel < SHORTEST_ROW or not yard.base:
        return Limits(norm, math.inf, math.inf, math.inf)
    times, own = rule.SPREAD * norm / yard.base, yard.reference
    return Limits(
        norm=norm,
        scaled=times * max(own.scaled, rule.LEAST_SCALED),
        row=times * max(own.row, rule.LEAST_ROW),
        worst=times * max(own.worst, rule.LEAST_WORST),
    )


@dataclass(frozen=True)
class Weighed:
    """One floating leaf against its yardstick. `refused` names the measure that was over its limit, or `signature`;
    `allowance` the lower precision whose limit it kept, if not the problem's own."""

    errors: Errors
    refused: str
    allowance: str
    likeness: float


def weigh(got: torch.Tensor, errors: Errors, yard: Yardstick) -> Weighed:
    """The rule applied to the errors of `got`."""
    alike = likeness(yard.signature, got, errors)
    refused = limits(yard, yard.limit).exceeded(errors)
    if not refused and abs(alike) >= rule.SIGNATURE:
        refused = "signature"
    if refused and refused != "broken":
        for name, limit in sorted(yard.limits.items(), key=lambda item: item[1]):
            if not limits(yard, limit).exceeded(errors):
                return Weighed(errors, "", name, alike)
    return Weighed(errors, refused, "", alike)


def likeness(signature: Signature | None, got: torch.Tensor, errors: Errors) -> float:
    """Correlation (-1..1) of the error with the way that rounding the inputs moves the native output.

    0 where the error is too small against that movement to be made of it.
    """
    if signature is None or not errors.norm >= rule.SIGNATURE * rms(signature.moved):
        return 0.0
    taken = widened(got).reshape(-1)[signature.positions].double()
    error = torch.nan_to_num(taken - signature.exact, nan=0.0, posinf=0.0, neginf=0.0)
    return correlation(error, signature.moved)


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of two vectors about zero, cut off at four times their mean sizes so that no few elements decide it."""
    a, b = (x.clamp(-4 * float(x.abs().mean()), 4 * float(x.abs().mean())) for x in (a, b))
    scale = float(a.norm() * b.norm())
    return float(a @ b) / scale if scale else 0.0
