"""Some elements of a burst's inputs and outputs are written only after the clock has started.

Inputs have to lie there before the clock starts: writing them is no work of the candidate's, and the cache is written
over in between. What knows of them may begin meanwhile: a kernel that watches for them, or a copy engine, which needs
no turn of the card and so is not seen by the time that the way to the start takes.

So some elements, drawn anew for each burst, first hold other elements' values, and get their own behind the start; and
some elements of each output are spoilt again there. Which ones nobody can tell but by reading every input and reading
or writing every output, all of it on the clock: no work is any less for having been done before. All of this is one
kernel of a size that is always the same, also in an empty burst, so that it is part of the fixed cost.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from typing import NamedTuple

import torch

from harness.links.elements import ADDRESSES, in_units, offsets
from harness.wire.cuda_memory import as_bytes
from harness.wire.nodes import TensorRef
from harness.wire.values import dtype_named

BYTES = 1 << 13
"""So many of all inputs, and of all outputs. Half are shared out evenly, so that a small tensor has its part."""


class _Form(NamedTuple):
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    itemsize: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize


class LateElements:
    """For each burst `draw`, then `deliver` behind it; neither waits for the device.

    `spare` (uint8, one-dimensional) is written to where a burst has less than the usual number of bytes.
    """

    def __init__(self, spare: torch.Tensor) -> None:
        self._spare = spare
        self._coins = torch.Generator(spare.device).manual_seed(secrets.randbits(63))
        self._memory = self._right = spare
        self._places = spare[:0]

    def draw(self, staged: torch.Tensor, inputs: Iterable[TensorRef], lie_at: int, outputs: list[torch.Tensor]) -> None:
        """Exchange elements of `inputs` in `staged`, which will lie at address `lie_at`; draw some of `outputs`."""
        parts = []
        for form, starts, count in _shares((_form_of(ref), ref.offset) for ref in inputs):
            places, others = self._bytes_of(form, starts, count), self._bytes_of(form, starts, count)
            right = staged[places]
            staged[places] = staged[others]
            parts.append((places + lie_at, right))
        for form, starts, count in _shares((_form_of(tensor), tensor.data_ptr()) for tensor in outputs):
            # All ones or all zeros for each element, by a coin: no known value, which might be an answer.
            coins = (self._random(2, count) * 255).repeat_interleave(form.itemsize)
            parts.append((self._bytes_of(form, starts, count), coins))
        left = 2 * BYTES - sum(len(places) for places, _ in parts)
        spare_at = self._spare.data_ptr()
        parts.append((self._random(self._spare.numel(), left) + spare_at, self._random(256, left)))
        # A tensor without elements lies nowhere.
        first = min(spare_at, lie_at, *(tensor.data_ptr() for tensor in outputs if tensor.numel()))
        self._memory = as_bytes(first, ADDRESSES, self._spare.device.index or 0)
        self._places = torch.cat([places for places, _ in parts]) - first
        self._right = torch.cat([right.to(torch.uint8) for _, right in parts])

    def deliver(self) -> None:
        """Enqueue one kernel on the current stream."""
        self._memory.scatter_(0, self._places, self._right)

    def _bytes_of(self, form: _Form, starts: list[int], count: int) -> torch.Tensor:
        """The places of all bytes of `count` random elements."""
        tensors = torch.tensor(starts, device=self._spare.device)[self._random(len(starts), count)]
        elements = offsets(self._random(math.prod(form.shape), count), form.shape, form.stride)
        return tensors.repeat_interleave(form.itemsize) + in_units(elements, form.itemsize)

    def _random(self, below: int, count: int) -> torch.Tensor:
        return torch.randint(below, (count,), generator=self._coins, device=self._spare.device)


def _form_of(one: TensorRef | torch.Tensor) -> _Form:
    dtype = dtype_named(one.dtype) if isinstance(one, TensorRef) else one.dtype
    stride = one.stride if isinstance(one, TensorRef) else one.stride()
    return _Form(tuple(one.shape), tuple(stride), dtype.itemsize)


def _shares(tensors: Iterable[tuple[_Form, int]]) -> list[tuple[_Form, list[int], int]]:
    """Forms, where each one's tensors begin, and how many elements to draw: half in equal parts, half by size."""
    alike: dict[_Form, list[int]] = {}
    for form, start in tensors:
        if form.nbytes:
            alike.setdefault(form, []).append(start)
    total = sum(form.nbytes * len(starts) for form, starts in alike.items())

    def share(form: _Form) -> int:
        return BYTES // 2 // len(alike) + BYTES // 2 * form.nbytes * len(alike[form]) // total

    return [(form, starts, share(form) // form.itemsize) for form, starts in alike.items()]
