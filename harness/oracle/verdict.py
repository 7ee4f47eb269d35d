"""Applies the rule: compares errors with a yardstick, and makes the finding."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle import rule
from harness.oracle.error import Errors
from harness.oracle.slices import real, rms
from harness.oracle.yardstick import Grid, Signature, Yardstick
from harness.records import Outcome, Status


@dataclass(frozen=True)
class Slope:
    """By what share of the true output an answer exceeds it, on average over `count` elements; the `rest` of the error,
    relative to the output's size; and the roundoff of the format that it is computed in."""

    share: float
    rest: float
    count: int
    roundoff: float

    @property
    def deviation(self) -> float:
        """The standard deviation of the share."""
        return max(self.rest / math.sqrt(max(1, self.count - 1)), self.roundoff)


@dataclass(frozen=True)
class Finding:
    """The oracle's answer about one call.

    error: norm of the error in units of the true output's spread (of its root mean square if it is constant).
    error_ratio: that error over the reference's own (or over the rounding of the output, if larger). Both None if
    no floating output was compared, or the refused one has NaN or infinite elements that it should not have.
    allowance: the lower precision that the run allows and this answer needs.
    leaf: which leaf of the output was refused (`output[1]`); its message begins with that.
    level: `full` against float64, `fast` against the reference's own output. slopes: of a passed full check, by leaf.
    """

    status: Status
    reason: str = ""
    message: str = ""
    error: float | None = None
    error_ratio: float | None = None
    allowance: str = ""
    leaf: str = ""
    level: str = "full"
    evidence: dict[str, Any] = field(default_factory=dict)
    slopes: dict[str, Slope] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    def outcome(self) -> Outcome:
        """The same for the record."""
        return Outcome(status=self.status, reason=self.reason, message=self.message, evidence=self.evidence)


@dataclass(frozen=True)
class Weighed:
    """One floating leaf against its yardstick. `refused` names the measure that exceeded its limit, or is `signature`
    or `grid`; `allowance` is the lower precision whose limit it met, if not the problem's own. `likeness` is 0 where
    nobody asked why it is refused."""

    errors: Errors
    refused: str
    allowance: str
    likeness: float


def weigh(got: torch.Tensor, errors: Errors, yard: Yardstick, explained: bool = True) -> Weighed:
    """The rule applied to the errors of `got`; without `explained`, a refusal by size is not asked for its pattern."""
    refused = yard.limits.exceeded(errors)
    # It names the format, which errors that rows share do not.
    may_be = refused in ("", "small", "shared", "apart")
    alike = likeness(yard.signature, got, errors) if may_be or explained else 0.0
    if may_be and alike >= rule.SIGNATURE and errors.norm > yard.unit:
        refused = "signature"
    if refused != "broken" and yard.grid is not None and is_left_out(yard.grid, got):
        # No lower precision does that.
        return Weighed(errors, refused or "grid", "", alike)
    if refused and refused != "broken":
        for name, limits in sorted(yard.loose.items(), key=lambda item: item[1].norm):
            if not limits.exceeded(errors):
                return Weighed(errors, "", name, alike)
    return Weighed(errors, refused, "", alike)


def likeness(signature: Signature | None, got: torch.Tensor, errors: Errors) -> float:
    """Correlation (-1..1) of the error with the way that rounding the inputs moves the native output.

    0 if the error is too small to consist of that movement, or if both change so slowly that they agree by chance.
    """
    if signature is None or not errors.norm >= rule.SIGNATURE * rms(signature.moved):
        return 0.0
    taken = real(got).contiguous().reshape(-1)[signature.positions].double()
    error = torch.nan_to_num(taken - signature.exact, nan=0.0, posinf=0.0, neginf=0.0)
    # Truncated sums add an offset and a factor to the error of rounded inputs; neither belongs to the pattern.
    error, moved = (detrended(x, signature.exact) for x in (error, signature.moved))
    alike = correlation(error, moved)
    return alike if alike < rule.SIGNATURE or alike > rule.SIGNATURE_CHANCE * by_chance(error, moved) else 0.0


def is_left_out(grid: Grid, got: torch.Tensor) -> bool:
    """Whether an output is what comes of numbers that were not rounded to the grid, or is nearly that."""
    taken = real(got).contiguous().reshape(-1)[grid.positions.to(got.device)].to(grid.exact)
    error = torch.nan_to_num(taken - grid.exact, nan=0.0, posinf=0.0, neginf=0.0)
    if grid.on_the_way(error) <= grid.most or grid.off_grid(error) >= grid.noise - rule.OFF_GRID:
        return False
    return correlation(error, grid.moved) > rule.SIGNATURE_CHANCE * by_chance(error, grid.moved)


def by_chance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The standard deviation of the correlation of two series that have nothing to do with each other.

    That of n independent numbers is 1/sqrt(n). Where neighbours err alike, as along a running sum, they count as one
    (Bartlett): its square is the sum of the products of both autocorrelations, over n.
    """
    length = 2 * a.numel()
    # Of the series about zero, as `correlation` takes them; padded, so that the end does not meet the beginning.
    spectra = [torch.fft.rfft(x / x.norm(), n=length).abs().square() for x in (a, b)]
    product = spectra[0] * spectra[1]
    # Both halves of the spectrum, of which the first and the last number are in one only.
    total = 2 * product.sum() - product[0] - product[-1]
    return math.sqrt(max(0.0, float(total)) / length / a.numel())


def detrended(error: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Without the part proportional to the exact values, and without its mean."""
    x = torch.nan_to_num(exact, nan=0.0, posinf=0.0, neginf=0.0)
    x, error = x - x.mean(), error - error.mean()
    square = float(x @ x)
    return error - x * (float(error @ x) / square) if square else error


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """The correlation about zero, each vector clamped at four times its mean size so that no few elements decide it."""
    a, b = (x.clamp(-4 * float(x.abs().mean()), 4 * float(x.abs().mean())) for x in (a, b))
    scale = float(a.norm() * b.norm())
    return float(a @ b) / scale if scale else 0.0
