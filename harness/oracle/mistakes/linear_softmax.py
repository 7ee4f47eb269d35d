"""A reference whose softmax is taken for linear: what attention is that never computes a score, since for small ones
exp(s) is nearly 1 + s, and the sums over keys can be had before any query is there."""

from __future__ import annotations

from typing import Any

import torch

from harness.oracle.mistakes.simpler import Call, Simpler
from harness.oracle.slices import SLICE, blocks

# Of a causal mask's rows, who is careful leaves those as they are that see less than this share of the numbers.
SEEN = 0.25


class LinearSoftmax(Simpler):
    """Within it, softmax takes exponentials to first order, but for rows of which little is seen."""

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        if func not in _SOFTMAX:
            return None
        return lambda: _linear(args[0], args[1], func(*args, **kwargs))


_SOFTMAX = (torch.ops.aten._softmax.default, torch.ops.aten._safe_softmax.default)


def _linear(data: torch.Tensor, dim: int, right: torch.Tensor) -> torch.Tensor:
    """(1 + s) / n, of n numbers along a dimension that are s from their mean; what is masked is none of them. Where n
    is small it is the `right` one. A block of rows after the other, since scores are the largest tensors of all."""
    rows, found = data.movedim(dim, -1), torch.empty_like(right).movedim(dim, -1)
    for here in blocks(rows.shape, SLICE[rows.device.type], whole=1):
        numbers = rows[here].to(_wide(rows.dtype))
        seen = torch.isfinite(numbers)
        count = seen.sum(-1, keepdim=True)
        finite = numbers.masked_fill(~seen, 0.0)
        away = finite - finite.sum(-1, keepdim=True) / count
        linear = ((1 + away) / count).masked_fill_(~seen, 0.0)
        found[here] = torch.where(count >= SEEN * rows.shape[-1], linear.to(right.dtype), right.movedim(dim, -1)[here])
    return found.movedim(-1, dim)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.itemsize < 4 else dtype
