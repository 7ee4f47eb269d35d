"""Elements of tensors by their places in memory, however their strides lie, without copying what is between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.wire.layout import contiguous_strides

# From the first tensor on, all addresses that there are. A size that is always the same makes the kernel, too.
ADDRESSES = 1 << 48


def offsets(elements: torch.Tensor, shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """How many elements' sizes behind the first one each element lies, by its number in row-major order."""
    if tuple(stride) == contiguous_strides(shape):
        return elements
    found = torch.zeros_like(elements)
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        found += elements % size * step
        elements = elements // size
    return found


def in_units(elements: torch.Tensor, lanes: int) -> torch.Tensor:
    """Numbers of elements as numbers of their units: `lanes` for each."""
    if lanes == 1:
        return elements
    return (elements[:, None] * lanes + torch.arange(lanes, device=elements.device)).flatten()
