"""Fill values: constants that masks leave in an output, so large that beside them nothing else would be seen.

They are -1e9 or the least number of a format, at many elements of an output whose other elements are far smaller. They
count as infinities of their sign: those are passed over where errors and scales are measured, and have to be where they
should be. Looked for in outputs for drawn inputs; hard inputs may be huge themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.oracle import rule
from harness.oracle.formats import FLOAT32, format_of
from harness.oracle.slices import matrix, real, tiles

# Values that are looked at, the largest first.
MOST = 4


@dataclass(frozen=True)
class Fills:
    """The fill values of one output; false where there are none."""

    values: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values)

    def __or__(self, other: Fills) -> Fills:
        """Those of both."""
        return Fills(tuple(dict.fromkeys((*self.values, *other.values))))

    def lifted(self, output: torch.Tensor, *native: torch.Tensor) -> torch.Tensor:
        """An output of real numbers with infinities where the output itself, or the `native` one, has a fill value."""
        for value in self.values:
            for one in (output, *native):
                output = output.masked_fill(real(one).to(output.device) == value, math.copysign(math.inf, value))
        return output

    def lifted_as(self, output: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
        """The same, only where the native output has one: elsewhere it is no fill value, but a wrong answer."""
        for value in self.values:
            output = output.masked_fill(native == value, math.copysign(math.inf, value))
        return output

    def lifted_exact(self, exact: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
        """The same of the exact output, where it has the fill value, too."""
        for value in self.values:
            exact = exact.masked_fill(
                (native == value) & _is(exact, value, native.dtype), math.copysign(math.inf, value)
            )
        return exact

    def missed(self, got: torch.Tensor, native: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        """A mask of the elements that are no fill value but should be; `exact` is lifted."""
        format = format_of(got.dtype)
        most = (rule.HONEST if format.bits >= FLOAT32.bits else rule.TIGHT) * format.roundoff
        missed = torch.zeros(native.shape, dtype=torch.bool, device=got.device)
        for value in self.values:
            away = most * abs(value)
            # At the end of a format these bounds are infinities.
            near = (got >= value - away) & (got <= value + away) & got.isfinite()
            missed |= (native == value) & exact.to(got.device).isinf() & ~near
        return missed


NONE = Fills()


def find(native: torch.Tensor, exact: torch.Tensor) -> Fills:
    """The fill values of a reference's output of real numbers, given its float64 output."""
    least, most = native.aminmax() if native.numel() else (0.0, 0.0)
    if max(-float(least), float(most)) < rule.FILL_LEAST:
        return NONE
    found, below = NONE, math.inf
    values: list[float] = []
    for _ in range(MOST + 1):
        largest, count, rest = _below(native, below)
        if values and 0 < rule.FILL_FAR * rest < min(map(abs, values)):
            found = Fills(tuple(values))
        if largest < rule.FILL_LEAST or count < 2:
            break
        here = [(value, native == value) for value in (largest, -largest)]
        if not all(bool(_is(exact[at.to(exact.device)], value, native.dtype).all()) for value, at in here):
            break
        values += [value for value, at in here if bool(at.any())]
        below = largest
    return found


def _below(native: torch.Tensor, below: float) -> tuple[float, int, float]:
    """The largest magnitude below a bound, how many elements have it, and the root mean square of all below it."""
    largest, count, square, numel = 0.0, 0, 0.0, 0
    flat = matrix(native)
    for tile in tiles(flat):
        sizes = flat[tile].double().abs()
        sizes = sizes[sizes < below]
        if sizes.numel():
            most = float(sizes.max())
            if most >= largest:
                count = (count if most == largest else 0) + int((sizes == most).sum())
                largest = most
            square += float(sizes @ sizes)
            numel += sizes.numel()
    return largest, count, math.sqrt(square / max(1, numel))


def _is(exact: torch.Tensor, value: float, dtype: torch.dtype) -> torch.Tensor:
    """Where an exact output is `value` when it is rounded; or beyond, if that is the end of the format: in float64, the
    least number is another one."""
    if abs(value) < torch.finfo(dtype).max:
        return exact.to(dtype) == value
    return exact >= value if value > 0 else exact <= value
