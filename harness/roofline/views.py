"""Which elements of a storage tensors show, and how many of its bytes several of them cover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

# Distinct views of one storage that are told apart; reads beyond these are left out.
MAX_VIEWS = 512


@dataclass(frozen=True, slots=True)
class View:
    """Which elements of a storage a tensor shows: sizes and strides in elements, broadcast dimensions left out."""

    start: int
    shape: tuple[tuple[int, int], ...]
    item_bytes: int

    @property
    def count(self) -> int:
        """Distinct elements, at most: windows that overlap are cut to what they span."""
        return min(math.prod(size for size, _ in self.shape), self.end - self.start)

    @property
    def end(self) -> int:
        return self.start + 1 + sum((size - 1) * stride for size, stride in self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * self.item_bytes


class Cover:
    """Bytes of a storage that views cover at least: those of a choice of views no two of which share an element."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._seen: set[View] = set()
        self._chosen: list[View] = []
        self._apart: dict[tuple[Any, ...], bool] = {}

    def __contains__(self, view: View) -> bool:
        return view in self._seen

    def add(self, view: View) -> None:
        if view in self._seen or len(self._seen) >= MAX_VIEWS:
            return
        self._seen.add(view)
        if all(self._known_apart(view, other) for other in self._chosen):
            self._chosen.append(view)
            self.nbytes += view.nbytes
        elif view.nbytes > self.nbytes:
            self._chosen = [view]
            self.nbytes = view.nbytes

    def _known_apart(self, one: View, other: View) -> bool:
        question = (one.start - other.start, one.shape, other.shape)
        if question not in self._apart:
            self._apart[question] = disjoint(one, other)
        return self._apart[question]


def view_of(tensor: torch.Tensor) -> View:
    """The elements that a strided tensor shows."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    shape = tuple(sorted(((n, s) for n, s in sizes if n != 1 and s != 0), key=lambda pair: -pair[1]))
    return View(int(tensor.storage_offset()), shape, tensor.element_size())


def disjoint(one: View, other: View) -> bool:
    """Whether two views surely share no element: apart in their extents, or interleaved on the same strides."""
    if one.item_bytes != other.item_bytes:
        return False
    if one.end <= other.start or other.end <= one.start:
        return True
    strides = [stride for _, stride in one.shape]
    if strides != [stride for _, stride in other.shape]:
        return False
    # They meet where the offset between them is a sum of strides times differences of indices, dimension by dimension.
    spans = [(b - 1, a - 1, s) for (a, s), (b, _) in zip(one.shape, other.shape, strict=True)]
    reachable = {one.start - other.start}
    for place, (high, low, stride) in enumerate(spans):
        rest_up = sum(h * s for h, _, s in spans[place + 1 :])
        rest_down = sum(w * s for _, w, s in spans[place + 1 :])
        reachable = {
            left - steps * stride
            for left in reachable
            for steps in range(
                max(-low, math.ceil((left - rest_up) / stride)),
                min(high, math.floor((left + rest_down) / stride)) + 1,
            )
        }
        if len(reachable) > 1000:
            return False
    return 0 not in reachable


def storage_number(tensor: torch.Tensor) -> int | None:
    """The number of its storage; None where a tensor has none (sparse)."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors(item)]
    return []
