"""Elements of a floating output that jump: a sign, a threshold, the expert that a token is sent to.

Where rounding decides which way, two right answers differ by the whole jump, at a few elements of millions or a few
rows of a hundred. What is far off is right if it is what the reference itself gives, as it is or for inputs,
parameters and what it rounds to integers that have moved by a few units in the last place, or half-way between that and
the exact one: the sign of a sum that rounds to zero is zero.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from harness.oracle.case import SECONDS
from harness.oracle.error import far_off, times_at
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, number
from harness.oracle.formats import FLOAT32, format_of
from harness.oracle.indices import DRAWS, JITTER, SMALL_SHARE
from harness.oracle.slices import counted, picked, places_in, real, wide_dtype
from harness.oracle.structure import flatten
from harness.oracle.yardstick import Yardstick

# Where so many looks at a row with wrong elements, of all of these in all moved runs, explain none, no more runs are
# made: one row needs many runs, since it may have jumped as a whole; a hundred of them show in the first.
FRUITLESS = 16
# What is looked at errs by more than this many times the limit of the norm, and of a row so does every other element
# (the median of normal errors is at 0.67 of their norm, and of these one in 400 is beyond three).
FAR, FAR_ROW = 3.0, 1.3
# And is explained by what is nearer to it than the exact value is, by this much: moved runs have errors of their own.
NEARER = 1 / 2
# Of an output that jumps itself, so many times as much as of the reference's own run may be looked at; and one in so
# many elements behind a quantiser, since one number that it rounds the other way is in a whole row of a product.
OWN_TIMES, LARGE_SHARE = 3.0, 2


def most_that_jumps(yard: Yardstick) -> float:
    """The largest share of an output that may be decided by rounding."""
    share = LARGE_SHARE if "graded" in yard.kinds else SMALL_SHARE
    return max(1 / share, OWN_TIMES * (yard.jumped or 0.0))


def decided_by_rounding(
    reference: ExactReference, expected: Expectation, path: str, got: torch.Tensor, missed: torch.Tensor | None
) -> torch.Tensor | None:
    """A mask of what is far off in the leaf at `path` and decided by rounding; None where nothing is, or too much is
    far off.

    `got` has real numbers; `missed` tells which of them should be fill values. Runs the reference up to `DRAWS` times
    after the last run that explained something, none of them begun after `SECONDS`.
    """
    yard, dtype = expected.yards[path], reference.precision(expected.inputs)
    if not math.isfinite(yard.limits.worst):
        return None

    def leaf(output: Any) -> torch.Tensor:
        found = number(dict(flatten(output))[path], dtype)
        assert found is not None
        return real(found)

    native, exact = leaf(expected.native), expected.exact[path]
    allowed = yard.limits.norm / yard.base
    limits = min(yard.limits.worst, FAR * allowed), FAR_ROW * allowed
    mask = far_off(yard.fills.lifted_as(got, native), exact, yard.scale, yard.expected, *limits)
    if missed is not None:
        mask |= missed
    count = counted(mask)
    if not count or count > most_that_jumps(yard) * mask.numel():
        return None
    # Of a large output no more than these is ever held.
    places = places_in(mask)
    given, right = (picked(one, places).to(places.device, wide_dtype(got.dtype)) for one in (got, exact))
    wrong = _Wrong(places, given, right, yard)
    wrong.explain(picked(native, places).to(right))
    ulps = JITTER[format_of(dtype).bits < FLOAT32.bits]
    until, draw, last = time.monotonic() + SECONDS, 0, 0
    while wrong.remain and draw - last < DRAWS and time.monotonic() < until:
        try:
            moved = leaf(reference.jittered_throughout(expected.inputs, ulps, expected.seed, draw))
        except torch.OutOfMemoryError:
            raise
        except Exception:
            # Foreign code may raise anything.
            return None
        draw += 1
        if wrong.explain(picked(moved, places).to(right)):
            last = draw
        elif wrong.remain == count and draw * wrong.rows >= FRUITLESS:
            return None
    return mask.masked_scatter(mask, ~wrong.left) if wrong.remain < count else None


class _Wrong:
    """What is far off at some flat `places`; those that nothing explains are `left`."""

    def __init__(self, places: torch.Tensor, given: torch.Tensor, right: torch.Tensor, yard: Yardstick) -> None:
        self._places, self._given, self._right, self._yard = places, given, right, yard
        self._most = torch.clamp(NEARER * self._off(right), max=yard.limits.worst)
        self.left = torch.ones(len(places), dtype=torch.bool, device=places.device)

    @property
    def remain(self) -> int:
        return int(self.left.sum())

    @property
    def rows(self) -> int:
        """In how many of the output's rows these places are."""
        return len(torch.div(self._places, self._yard.scale.col.numel(), rounding_mode="floor").unique())

    def explain(self, other: torch.Tensor) -> bool:
        """Whether another right answer, or what is half-way to it, explains some."""
        before = self.remain
        for one in (other, (other + self._right) / 2):
            self.left &= self._off(one) > self._most
        return self.remain < before

    def _off(self, other: torch.Tensor) -> torch.Tensor:
        return times_at(self._places, self._given, other, self._yard.scale, self._yard.expected)
