"""The check for every timed call: against the reference's own output, with limits taken from full checks.

By the triangle inequality the distance to the exact output is at most the distance to the reference's output plus the
reference's own error. With a limit L for the full check and an own error e, an output is accepted here up to
sqrt(L^2 + e^2), which is where an error independent of the reference's comes to when it is L. So an accepted output
errs by at most sqrt(L^2 + e^2) + e: 1.39 L in 16 bits, where L >= 3e, and 1.07 L in float32, where L >= 16e (as a rule:
`rule.limit`). L, e and the other limits are the least of all full checks before. Not accepting is no refusal: the
full check then decides, so nobody is refused for the reference's error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch

from harness.oracle.error import Scale, expected_errors, measure, scale_of, widened
from harness.oracle.verdict import Limits, limits
from harness.oracle.yardstick import Yardstick


@dataclass(frozen=True)
class Fast:
    """What one leaf is held to, by its full checks: absolute figures and, `_share`, in units of the output's spread.

    `expected` is dimensionless, the rest of `Limits` in units of expected errors.
    """

    norm: float
    norm_share: float
    own: float
    own_share: float
    expected: float
    scaled: float
    row: float
    worst: float

    @classmethod
    def of(cls, yard: Yardstick) -> Fast:
        spread = yard.scale.spread or math.inf
        most = limits(yard, yard.limit)
        return cls(
            norm=yard.limit,
            norm_share=yard.limit / spread,
            own=yard.own,
            own_share=yard.own / spread,
            expected=yard.expected.relative,
            scaled=most.scaled,
            row=most.row,
            worst=most.worst,
        )

    def stricter(self, other: Fast | None) -> Fast:
        """The smaller of each figure."""
        if other is None:
            return self
        return Fast(
            **{field.name: min(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        )

    def limits(self, scale: Scale) -> Limits:
        """For an output of this scale: the absolute or the relative figure, whichever allows less."""
        norm = min(self.norm, self.norm_share * scale.spread)
        own = min(self.own, self.own_share * scale.spread)
        return Limits(math.hypot(norm, own), self.scaled, self.row, self.worst)


@dataclass(frozen=True)
class Quick:
    """The fast check's figures for one leaf; `distance` is to the reference's output, in units of its spread."""

    accepted: bool
    distance: float
    of_limit: float


def quick(got: torch.Tensor, native: torch.Tensor, fast: Fast) -> Quick:
    """Whether `got` is near enough to the reference's own output to be right."""
    own = widened(native)
    scale = scale_of(own)
    most = fast.limits(scale)
    errors = measure(got, own, scale, expected_errors(native.dtype, fast.expected), native)
    distance = errors.norm / scale.spread if scale.spread else errors.norm
    return Quick(not most.exceeded(errors), distance, errors.norm / most.norm if most.norm else math.inf)
