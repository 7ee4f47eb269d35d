"""Where the wrong elements are: the last rows, one batch entry, one tile, a few elements, or everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.slices import counted

# A box is the place of the error if at least this share of it is wrong, and if it is at most this share of the whole.
DENSE = 0.5
WHOLE = 0.9
FEW = 8


@dataclass(frozen=True)
class Region:
    """`word` for the reason (empty: no place stands out), `sentence` for people, `box` first and last per dimension."""

    word: str
    sentence: str
    box: list[list[int]]

    @property
    def mend(self) -> str:
        """What to look at first."""
        return "look whether the last block reaches the end" if self.word.startswith("tail_") else ""


def locate(mask: torch.Tensor) -> Region:
    """Where the wrong elements of a mask (of the output's shape) are."""
    count, total = counted(mask), mask.numel()
    box = _box(mask) if count else []
    if not count or total == 1:
        return Region("", "", box)
    sizes = [last - first + 1 for first, last in box]
    volume = 1
    for size in sizes:
        volume *= size
    if count == 1:
        return Region("one_element", f"one element, at {[first for first, _ in box]}", box)
    if volume > WHOLE * total or count < DENSE * volume:
        if count <= FEW:
            return Region("few_elements", f"{count} elements of {total}", box)
        return Region("", "", box)
    narrow = [d for d, size in enumerate(sizes) if size < mask.shape[d]]
    return _named(mask.shape, box, narrow)


def _named(shape: torch.Size, box: list[list[int]], narrow: list[int]) -> Region:
    if len(narrow) != 1:
        where = ", ".join(f"{first}..{last} of {length}" for (first, last), length in zip(box, shape, strict=True))
        return Region("tile", f"one tile: {where}", box)
    (d,) = narrow
    first, last = box[d]
    kind = _kind(d, len(shape))
    span = f"{first}" if first == last else f"{first}..{last}"
    sentence = f"{kind.replace('_', ' ')} {span} of {shape[d]} (dimension {d})"
    if last == shape[d] - 1 and first > 0:
        return Region("batch_entry" if kind == "batch" and first == last else f"tail_{_plural(kind)}", sentence, box)
    if first == last:
        return Region("batch_entry" if kind == "batch" else f"one_{kind}", sentence, box)
    return Region(_plural(kind), sentence, box)


def _kind(dimension: int, dimensions: int) -> str:
    if dimensions == 1:
        return "element"
    if dimension == dimensions - 1:
        return "column"
    if dimension == dimensions - 2:
        return "row"
    return "batch" if dimension == 0 else "slice"


def _plural(kind: str) -> str:
    return kind if kind == "batch" else f"{kind}s"


def _box(mask: torch.Tensor) -> list[list[int]]:
    box: list[Any] = []
    for dimension in range(mask.dim()):
        hit = mask
        for other in reversed(range(mask.dim())):
            if other != dimension:
                hit = hit.any(other)
        places = hit.nonzero().flatten()
        box.append([int(places[0]), int(places[-1])])
    return box
