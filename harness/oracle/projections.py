"""What one input tensor promises, and hard inputs that keep it: changed, brought back, as drawn where that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from harness.oracle.properties import Property
from harness.oracle.slices import SLICE, blocks

# On the host, a block's temporaries stay in its cache.
BLOCK = {**SLICE, "cpu": 1 << 20}


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Which elements are equal, NaN to NaN."""
    return (one == other) | ((one != one) & (other != other))


def all_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape are equal, looked at block by block."""
    return one is other or all(bool(same(one[at], other[at]).all()) for at in pieces(one))


def pieces(tensor: torch.Tensor, whole: int = 0) -> Iterator[tuple[slice, ...]]:
    """Where to index a tensor for one block after the other."""
    return blocks(tensor.shape, BLOCK[tensor.device.type], whole)


def mirrored(tensor: torch.Tensor, at: Sequence[slice]) -> torch.Tensor:
    """That block of the tensor with its last two dimensions swapped."""
    return tensor[(*at[:-2], at[-1], at[-2])].mT


@dataclass(frozen=True, eq=False)
class Kept:
    """What one tensor promises.

    fixed: the elements that are the same in every draw. whole: that is all of them. repeated: dimensions along which
    all slices are equal. copy_of: the position of an earlier tensor that it equals, or whose transpose it is.
    What has floors or ceilings promises nothing else.
    """

    fixed: torch.Tensor | None = None
    whole: bool = False
    repeated: tuple[int, ...] = ()
    symmetric: bool = False
    # Each with the dimension along which its rows lie; None for what each element promises by itself.
    properties: tuple[tuple[int | None, Property], ...] = ()
    copy_of: int | None = None
    transposed: bool = False
    # Positions of earlier tensors that it is nowhere below, and nowhere above.
    floors: tuple[int, ...] = ()
    ceilings: tuple[int, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether the tensor promises nothing."""
        found = (self.fixed is not None, self.whole, self.repeated, self.symmetric, self.properties)
        return self.copy_of is None and not any((*found, self.floors, self.ceilings))

    def changed(self, drawn: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """`change` of a drawn tensor that promises something, with what it promises; the drawn one where none has it.

        Of slices that are equal, `change` sees one.
        """
        by_rows = self._dimensions(drawn.dim())
        once = [d for d in self.repeated if d not in by_rows and not (self.symmetric and d >= drawn.dim() - 2)]
        seen = _first(drawn, once)
        made = change(seen)
        if made is seen:
            return drawn
        made = self._restored(made, seen, None if self.fixed is None else _first(self.fixed, once))
        if once:
            made = made.expand_as(drawn).contiguous()
        return made if self.held(made, drawn) else drawn

    def held(self, tensor: torch.Tensor, drawn: torch.Tensor) -> bool:
        """Whether a tensor has what is promised of it, as a drawn one has."""
        if any(not all_same(tensor, _first(tensor, [d]).expand_as(tensor)) for d in self.repeated):
            return False
        if self.symmetric and not all(bool(same(tensor[at], mirrored(tensor, at)).all()) for at in pieces(tensor)):
            return False
        for d in self._dimensions(tensor.dim()):
            rows, before, fixed = (
                rows_along(tensor, d),
                rows_along(drawn, d),
                None if self.fixed is None else rows_along(self.fixed, d),
            )
            for at in pieces(rows, 1):
                if not bool(self._rows_held(d, rows[at], before[at], None if fixed is None else fixed[at]).all()):
                    return False
        return True

    def _dimensions(self, dimensions: int) -> list[int]:
        """Those along which rows promise something, or any."""
        return sorted({d for d, _ in self.properties if d is not None}) or [max(0, dimensions - 1)]

    def _restored(self, made: torch.Tensor, drawn: torch.Tensor, fixed: torch.Tensor | None) -> torch.Tensor:
        result = torch.empty_like(made, memory_format=torch.contiguous_format)
        for d in self._dimensions(made.dim()):
            new, before, out = rows_along(made, d), rows_along(drawn, d), rows_along(result, d)
            mask = None if fixed is None else rows_along(fixed, d)
            for at in pieces(out, 1):
                still = None if mask is None else mask[at]
                rows = new[at] if still is None else torch.where(still, before[at], new[at])
                for one in self._along(d):
                    rows = one.restored(rows)
                held = self._rows_held(d, rows, before[at], still)
                out[at] = torch.where(held[..., None], rows, before[at])
            made = result
        return _symmetric(result, drawn) if self.symmetric else result

    def _along(self, dimension: int) -> list[Property]:
        """What rows along a dimension promise, their elements last."""
        return [one for of in (dimension, None) for d, one in self.properties if d == of]

    def _rows_held(
        self, dimension: int, rows: torch.Tensor, drawn: torch.Tensor, fixed: torch.Tensor | None
    ) -> torch.Tensor:
        """For each row along a dimension, whether it keeps what is promised of such rows."""
        held = torch.ones(rows.shape[:-1], dtype=torch.bool, device=rows.device)
        if fixed is not None:
            held &= (same(rows, drawn) | ~fixed).all(-1)
        for one in self._along(dimension):
            held &= one.held(rows)
        return held


def rows_along(tensor: torch.Tensor, dimension: int | None) -> torch.Tensor:
    """The tensor with its rows along a dimension (the last one, if none is named) along the last one."""
    if tensor.dim() == 0:
        return tensor.reshape(1)
    return tensor if dimension is None else tensor.movedim(dimension, -1)


def _first(tensor: torch.Tensor, dimensions: Sequence[int]) -> torch.Tensor:
    """The first slice along each of some dimensions, which stay."""
    for dimension in dimensions:
        tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _symmetric(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """The one of two mirrored elements that is further from the drawn one, twice."""
    result = torch.empty_like(made)
    for at in pieces(made):
        one, other = made[at], mirrored(made, at)
        far = (one - drawn[at]).abs().nan_to_num(torch.inf)
        other_far = (other - mirrored(drawn, at)).abs().nan_to_num(torch.inf)
        further = torch.where(far > other_far, one, other)
        result[at] = torch.where(far == other_far, torch.maximum(one, other), further)
    return result
