"""Inputs in which some numbers, rows or entries equal others, and most do not: what drawn numbers never do.

Who leaves out what a reference does about equal ones is right wherever all differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

# One in so many becomes a copy.
SHARE = 8


def of_slices(dimension: int) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Some slices along a dimension, which is not the last one, become copies of others. In inputs that are as long
    they are the same slices, so that an entry of the batch is a copy with all that belongs to it."""

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() < 2 or tensor.shape[dimension] < 2:
            return tensor
        length = tensor.shape[dimension]
        fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
        order = torch.randperm(length, generator=fresh, device=tensor.device)
        copied, kept = order.tensor_split([max(1, length // SHARE)])
        sources = torch.arange(length, device=tensor.device)
        sources[copied] = kept[torch.randint(len(kept), copied.shape, generator=fresh, device=tensor.device)]
        return tensor.index_select(dimension, sources)

    return make


def of_entries(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same along the first dimension, where that is another one than the rows'."""
    return tensor if tensor.dim() < 3 else of_slices(0)(tensor, generator)


def within_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Some numbers of each row take the value of the one that is so many places before it."""
    if tensor.dim() == 0 or tensor.shape[-1] < 2:
        return tensor
    device = tensor.device
    apart = 1 + int(torch.randint(tensor.shape[-1] - 1, (), generator=generator, device=device))
    dice = torch.randint(SHARE, tensor.shape, generator=generator, device=device, dtype=torch.int8)
    return torch.where(dice == 0, tensor.roll(apart, -1), tensor)


def of_another(tensor: torch.Tensor, earlier: Sequence[torch.Tensor], generator: torch.Generator) -> torch.Tensor:
    """Some rows become copies of rows of the last of several `earlier` tensors whose rows have the same form."""
    fit = [one for one in earlier if _have_like_rows(one, tensor)]
    if not fit:
        return tensor
    rows, others = tensor.shape[-2], fit[-1].shape[-2]
    copied = torch.randperm(rows, generator=generator, device=tensor.device)[: max(1, rows // SHARE)]
    sources = torch.randint(others, copied.shape, generator=generator, device=tensor.device)
    return tensor.index_copy(-2, copied, fit[-1].index_select(-2, sources))


def _have_like_rows(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.dim() == other.dim() > 1
        and one.dtype is other.dtype
        and one.device == other.device
        and one.shape[:-2] == other.shape[:-2]
        and one.shape[-1] == other.shape[-1]
        and min(one.shape[-2], other.shape[-2]) > 0
    )
