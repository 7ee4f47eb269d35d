"""A part of what an output varies by that an answer leaves out, or has too much of.

An output may be large, and differ from row to row and from column to column, so that little of it is each element's
own; 16-bit numbers are then rounded by nearly as much as that. But rounding does not know which way an element's own
part goes. So of the difference between an answer and the reference's own output, both without the means of their rows
and columns, no share of the true output's may be found (least squares). Some rows and columns tell, drawn anew each
time.
"""

from __future__ import annotations

import functools
import math
import secrets
from typing import Any, NamedTuple

import torch

from harness.oracle.shared_errors import lines
from harness.oracle.slices import coordinates

# So many rows and columns are looked at, and at least so many tell.
LOOKED_AT, LEAST = 128, 32
# The least share that counts, beyond what comes by chance, in standard deviations.
MOST, CHANCE = 0.1, 5.0
# Where a few elements are far larger than all others, those few decide, and rounding of them is no noise.
FAR = 8.0


class Share(NamedTuple):
    """What share of its elements' own parts an answer lacks (below 0) or has beyond them, one for each output of a
    stack, its standard deviation, and the mean square of those parts; NaN where nothing can be told."""

    found: torch.Tensor
    deviation: torch.Tensor
    square: torch.Tensor

    def beyond(self, error: torch.Tensor | float) -> torch.Tensor:
        """Whether it is more than `MOST`, than chance, and than what errors of that size may come to: a sound kernel's
        or the reference's own, whose output may stand for the true one, or of numbers too small for their format."""
        return self.found.abs() - CHANCE * self.deviation > MOST + error**2 / self.square


def tells(output: torch.Tensor) -> bool:
    """Whether an output, of real numbers, has rows and columns enough."""
    return min(lines(output)) >= LEAST


def share(got: torch.Tensor, native: torch.Tensor, true: torch.Tensor) -> Share:
    """Of answers, (n, ...), the reference's own outputs and the true ones, which may be those; of real numbers."""
    rows, columns = (_some(length, got.device) for length in lines(true[0]))
    # Without a copy of a whole output that is not contiguous.
    places = [*(place[:, None] for place in coordinates(rows, true.shape[1:-1])), columns[None, :]]

    def own(stack: torch.Tensor) -> torch.Tensor:
        here: tuple[Any, ...] = (slice(None), *(place.to(stack.device) for place in places))
        return stack[here].to(got.device, torch.float64)

    truth = _centred(own(true))
    error = _centred(own(got) - own(native))
    count = truth[0].numel()
    square = truth.square().mean((1, 2))
    found = (error * truth).mean((1, 2)) / square
    deviation = (error.square().mean((1, 2)) / square / count).sqrt()
    usual = truth.abs().amax((1, 2)) <= FAR * square.sqrt()
    return Share(torch.where(usual, found, math.nan), deviation, square)


def _some(length: int, device: torch.device) -> torch.Tensor:
    if length <= LOOKED_AT:
        return torch.arange(length, device=device)
    return torch.randint(length, (LOOKED_AT,), generator=_generator(device), device=device)


@functools.cache
def _generator(device: torch.device) -> torch.Generator:
    """One that no candidate knows, nor a problem sets."""
    return torch.Generator(device).manual_seed(secrets.randbits(63))


def told(found: float) -> str:
    """That share in words."""
    what = "is missing" if found < 0 else "is there beside it"
    part = f"{abs(found):.0%} of what each element is beyond the means of its row and its column"
    return f"{part} {what}; rounding takes no part of it"


def _centred(stack: torch.Tensor) -> torch.Tensor:
    return stack - stack.mean(1, keepdim=True) - stack.mean(2, keepdim=True) + stack.mean((1, 2), keepdim=True)
