"""Elements of a floating output that jump: a sign, a threshold, the expert that a token is sent to.

Where rounding decides which way, two right answers differ by the whole jump, at a few elements of millions. Such an
element is right if it is what the reference itself gives for inputs, parameters and what it rounds to integers that
have moved by a few units in the last place, or half-way between that and
the exact one: the sign of a sum that rounds to zero is zero.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from harness.oracle.case import SECONDS
from harness.oracle.error import wrong, wrong_at
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, number
from harness.oracle.formats import FLOAT32, format_of
from harness.oracle.indices import DRAWS, JITTER, SMALL_SHARE
from harness.oracle.slices import counted, picked, places_in, real, wide_dtype
from harness.oracle.structure import flatten

# Where so many looks at a wrong element, of all of them in all moved runs, explain none, no more runs are made: one
# element needs many runs, a hundred of them show in the first.
FRUITLESS = 16
# Behind a quantiser an element has jumped that errs by so many times what the norm may, and one in so many may have.
VISIBLE, LARGE_SHARE = 4.0, 2


def decided_by_rounding(
    reference: ExactReference, expected: Expectation, path: str, got: torch.Tensor, missed: torch.Tensor | None
) -> torch.Tensor | None:
    """A mask of the wrong elements of the leaf at `path`, if they are few and rounding decides all of them; else None.

    `got` has real numbers; `missed` tells which of them should be fill values. Runs the reference up to `DRAWS` times,
    none of them begun after `SECONDS`.
    """
    yard, dtype = expected.yards[path], reference.precision(expected.inputs)
    if not math.isfinite(yard.limits.worst):
        return None

    def leaf(output: Any) -> torch.Tensor:
        found = number(dict(flatten(output))[path], dtype)
        assert found is not None
        return real(found)

    # One number that a quantiser rounds the other way is in a whole row of the product behind it, more or less.
    graded = "graded" in yard.kinds
    far = min(yard.limits.worst, VISIBLE * max(1.0, yard.limits.norm / yard.base)) if graded else yard.limits.worst
    exact, limits = expected.exact[path], (yard.scale, yard.expected, far)
    mask = wrong(yard.fills.lifted_as(got, leaf(expected.native)), exact, *limits)[0].reshape(got.shape)
    if missed is not None:
        mask |= missed
    count = counted(mask)
    if not count or count * (LARGE_SHARE if graded else SMALL_SHARE) > mask.numel():
        return None
    # Of a large output no more than these is ever held.
    places = places_in(mask)
    given, right = (picked(one, places).to(places.device, wide_dtype(got.dtype)) for one in (got, exact))
    ulps = JITTER[format_of(dtype).bits < FLOAT32.bits]
    left, until = torch.ones(count, dtype=torch.bool, device=places.device), time.monotonic() + SECONDS
    for draw in range(DRAWS):
        try:
            moved = leaf(reference.jittered_throughout(expected.inputs, ulps, expected.seed, draw))
        except torch.OutOfMemoryError:
            raise
        except Exception:
            # Foreign code may raise anything.
            return None
        moved = picked(moved, places).to(right)
        for one in (moved, (moved + right) / 2):
            left &= wrong_at(places, given, one, *limits)
        remain = int(left.sum())
        if not remain:
            return mask
        if (remain == count and (draw + 1) * count >= FRUITLESS) or time.monotonic() > until:
            return None
    return None
