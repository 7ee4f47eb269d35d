"""The check for every timed call: against the reference's own output, with limits taken from full checks.

By the triangle inequality the distance to the exact output is at most the distance to the reference's output plus the
reference's own error. With a limit L for the full check and an own error e, an output is accepted here up to
sqrt(L^2 + e^2), which is where an error independent of the reference's comes to when it is L. So an accepted output
errs by at most sqrt(L^2 + e^2) + e: 1.39 L in 16 bits, where L is 3e as a rule, 1.13 L in float32, where it is 8e or
more, and 1.62 L at the worst, since no rule makes it less than 2e. L, e and the other limits are the least of all full
checks before. Not accepting is no refusal: the full check then decides, so nobody is refused for the reference's error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.oracle.error import Expected, Tolerances, measure
from harness.oracle.fills import NONE, Fills
from harness.oracle.scale import Scale, scale_of
from harness.oracle.slices import real, widened
from harness.oracle.yardstick import Yardstick


@dataclass(frozen=True)
class Fast:
    """What one leaf is held to, by its full checks: absolute figures and, `_share`, in units of the output's spread.

    The last three are in units of the errors that `expected` describes.
    """

    norm: float
    norm_share: float
    own: float
    own_share: float
    expected: Expected
    scaled: float
    row: float
    worst: float
    share: float = math.inf
    rows: float = math.inf
    bulk: float = math.inf
    shared: float = math.inf
    shared_share: float = math.inf
    fills: Fills = NONE

    @classmethod
    def of(cls, yard: Yardstick) -> Fast:
        spread = yard.scale.spread or math.inf
        most = yard.limits
        return cls(
            norm=most.norm,
            norm_share=most.norm / spread,
            own=yard.own,
            own_share=yard.own / spread,
            expected=yard.expected,
            scaled=most.scaled,
            row=most.row,
            worst=most.worst,
            share=most.share,
            rows=most.rows,
            bulk=most.bulk,
            shared=most.shared,
            shared_share=most.shared / spread,
            fills=yard.fills,
        )

    def stricter(self, other: Fast | None) -> Fast:
        """The smaller of each figure."""
        if other is None:
            return self
        least = {name: min(getattr(self, name), getattr(other, name)) for name in _FIGURES}
        expected = min(self.expected, other.expected, key=lambda expected: expected.relative)
        return Fast(**least, expected=expected, fills=self.fills | other.fills)

    def limits(self, scale: Scale) -> Tolerances:
        """For an output of this scale: the absolute or the relative figure, whichever allows less."""
        norm = min(self.norm, self.norm_share * scale.spread)
        own = min(self.own, self.own_share * scale.spread)
        return Tolerances(
            math.hypot(norm, own),
            self.scaled,
            self.row,
            self.worst,
            self.share,
            self.rows,
            self.bulk,
            # What the reference loses by itself is not shared.
            min(self.shared, self.shared_share * scale.spread),
        )


_FIGURES = (
    *("norm", "norm_share", "own", "own_share", "scaled", "row", "worst", "share", "rows", "bulk"),
    *("shared", "shared_share"),
)


@dataclass(frozen=True)
class Quick:
    """The fast check's figures for one leaf; `distance` is to the reference's output, in units of its spread."""

    accepted: bool
    distance: float
    of_limit: float


def quick(got: torch.Tensor, native: torch.Tensor, fast: Fast) -> Quick:
    """Whether `got` is near enough to the reference's own output to be right.

    Compared in float32 where the output is: a difference is rounded by a roundoff of itself, which is nothing, at half
    the memory traffic of float64. The very same output, as the baseline's is, needs no measuring.
    """
    if torch.equal(got, native):
        return Quick(True, 0.0, 0.0)
    own = real(native) if native.dtype is torch.float32 else widened(native)
    if fast.fills:
        got, native = real(got), real(native)
        if bool(fast.fills.missed(got, native, fast.fills.lifted(native)).any()):
            return Quick(False, math.inf, math.inf)
        got, own = fast.fills.lifted_as(got, native), fast.fills.lifted(own)
        native = fast.fills.lifted(native)
    scale = scale_of(own, axes=False)
    most = fast.limits(scale)
    errors = measure(got, own, scale, fast.expected, native, most)
    distance = errors.norm / scale.spread if scale.spread else errors.norm
    return Quick(not most.exceeded(errors), distance, errors.norm / most.norm if most.norm else math.inf)
