"""What is never above what: an element of each row above another, one input above another. No range makes it so alone:
elements of other rows are above."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.oracle.properties import HEAD
from harness.oracle.slices import blocks, picked, sample

# Longer rows are looked at for their order as a whole alone (`properties.Sorted`).
LONGEST = 8
# Elements that are compared at once.
BLOCK = 1 << 24
# Of a tensor, so many tell how often its elements are above another's by chance.
SAMPLED = 1 << 16


class Ordered:
    """Some elements of each row are never above others of it: corners of a box, bounds of an interval. A
    `properties.Property`."""

    def __init__(self, length: int, least_bits: float) -> None:
        # By the places of the lower one and of the upper one; what some draw lacks is gone.
        self._bits = {(low, high): 0.0 for low in range(length) for high in range(length) if low != high}
        self._least_bits = least_bits

    @property
    def words(self) -> str:
        """The promise, in words for people."""
        return f"rows with {', '.join(f'element {low} <= element {high}' for low, high in sorted(self._pairs()))}"

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """How much surer these rows have made the surest of it; None where nothing is left."""
        surest = max(self._bits.values(), default=0.0)
        for part in (rows[next(blocks(rows.shape, HEAD, 1))], rows):
            for low, high in list(self._bits):
                if bool((part[..., low] > part[..., high]).any()):
                    del self._bits[low, high]
        for low, high in self._bits:
            one, other = rows[..., low].reshape(-1), rows[..., high].reshape(-1)
            if varying is not None:
                both = (varying[..., low] & varying[..., high]).reshape(-1)
                one, other = one[both], other[both]
            self._bits[low, high] += order_bits(one, other)
        return max(self._bits.values()) - surest if self._bits else None

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        """From the first element to the last, those that come after it between those that went before."""
        columns = list(rows.unbind(-1))
        for place in range(len(columns)):
            floors = [columns[low] for low, high in self._pairs() if high == place and low < place]
            ceilings = [columns[high] for low, high in self._pairs() if low == place and high < place]
            columns[place] = between(columns[place], floors, ceilings)
        return torch.stack(columns, -1)

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        """For each row, whether it has what is promised."""
        held = torch.ones(rows.shape[:-1], dtype=torch.bool, device=rows.device)
        for low, high in self._pairs():
            held &= ~(rows[..., low] > rows[..., high])
        return held

    def _pairs(self) -> list[tuple[int, int]]:
        """Those of which chance is no explanation, but equal ones: these are equal slices."""
        sure = [pair for pair, bits in self._bits.items() if bits >= self._least_bits]
        return [pair for pair in sure if pair[::-1] not in sure]


@dataclass
class Order:
    """That a tensor is nowhere above another one."""

    low: int
    high: int
    bits: float = 0.0

    def in_draw(self, tensors: list[torch.Tensor]) -> bool:
        """Whether it is so in this draw, too, of which a sample tells how sure that makes it."""
        low, high = tensors[self.low], tensors[self.high]
        if any(bool((low[at] > high[at]).any()) for size in (HEAD, BLOCK) for at in blocks(low.shape, size)):
            return False
        places = sample(low.numel(), low.device, SAMPLED)
        self.bits += order_bits(picked(low, places), picked(high, places))
        return True


def order_bits(low: torch.Tensor, high: torch.Tensor) -> float:
    """Chance puts each of some elements below its like with a probability of at most 2**-bits: as far as it is above
    that of another one."""
    if low.numel() < 2:
        return 0.0
    below = int((low <= high.roll(low.numel() // 2)).sum())
    return -low.numel() * math.log2((below + 1) / (low.numel() + 1))


def between(new: torch.Tensor, floors: list[torch.Tensor], ceilings: list[torch.Tensor]) -> torch.Tensor:
    """What is below a floor comes as far above it, what is above a ceiling below it; with both, to the nearer one."""
    floor = torch.stack(floors).amax(0) if floors else None
    ceiling = torch.stack(ceilings).amin(0) if ceilings else None
    if floor is not None and ceiling is not None:
        return new.clamp(floor, ceiling)
    if floor is not None:
        return torch.where(new < floor, floor + (floor - new), new)
    if ceiling is not None:
        return torch.where(new > ceiling, ceiling - (new - ceiling), new)
    return new
