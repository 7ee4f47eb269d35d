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
from dataclasses import dataclass, replace

import torch

from harness.oracle import left_out, rule
from harness.oracle.error import Expected, Tolerances, measure
from harness.oracle.fills import NONE, Fills
from harness.oracle.scale import Scale, scale_of
from harness.oracle.slices import real, widened
from harness.oracle.yardstick import Yardstick


@dataclass(frozen=True)
class Fast:
    """What one leaf is held to, by its full checks: their `limits`, which are absolute or in units of the errors that
    `expected` describes, and the reference's `own` error; `_share`, in units of the output's spread."""

    limits: Tolerances
    own: float
    expected: Expected
    norm_share: float
    own_share: float
    shared_share: float
    apart_share: float
    small_share: float
    fills: Fills = NONE

    @classmethod
    def of(cls, yard: Yardstick) -> Fast:
        spread = yard.scale.spread or math.inf
        return cls(
            limits=yard.limits,
            own=yard.own,
            expected=yard.expected,
            norm_share=yard.limits.norm / spread,
            own_share=yard.own / spread,
            shared_share=yard.limits.shared / spread,
            apart_share=yard.limits.apart / spread,
            small_share=yard.limits.small / spread,
            fills=yard.fills,
        )

    def stricter(self, other: Fast | None) -> Fast:
        """The smaller of each figure."""
        if other is None:
            return self
        return Fast(
            limits=self.limits.stricter(other.limits),
            own=min(self.own, other.own),
            expected=min(self.expected, other.expected, key=lambda expected: expected.relative),
            norm_share=min(self.norm_share, other.norm_share),
            own_share=min(self.own_share, other.own_share),
            shared_share=min(self.shared_share, other.shared_share),
            apart_share=min(self.apart_share, other.apart_share),
            small_share=min(self.small_share, other.small_share),
            fills=self.fills | other.fills,
        )

    def own_error(self, spread: float) -> float:
        """The reference's, for an output of that spread."""
        return min(self.own, self.own_share * spread)

    def within(self, scale: Scale) -> Tolerances:
        """The limits for an output of this scale: the absolute or the relative figure, whichever allows less."""
        norm = min(self.limits.norm, self.norm_share * scale.spread)
        own = self.own_error(scale.spread)
        # What the reference loses by itself is not shared.
        shared = min(self.limits.shared, self.shared_share * scale.spread)
        apart = min(self.limits.apart, self.apart_share * scale.spread)
        small = min(self.limits.small, self.small_share * scale.spread)
        return replace(
            self.limits,
            norm=math.hypot(norm, own),
            shared=shared,
            apart=math.hypot(apart, own),
            # Small elements err by a third of that at the most in the reference's own run.
            small=math.hypot(small, small / rule.SMALL),
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
    most = fast.within(scale)
    errors = measure(got, own, scale, fast.expected, native, most)
    distance = errors.norm / scale.spread if scale.spread else errors.norm
    accepted = not most.exceeded(errors)
    if accepted and left_out.tells(own):
        lacks = left_out.share(*(one[None] for one in (real(got), own, own)))
        accepted = not bool(lacks.beyond(max(fast.own_error(scale.spread), fast.expected.smallest)))
    return Quick(accepted, distance, errors.norm / most.norm if most.norm else math.inf)
