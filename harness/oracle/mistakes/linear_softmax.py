"""A reference whose softmax is taken for linear: what attention is that never computes a score, since for small ones
exp(s) is nearly 1 + s, and the sums over keys can be had before any query is there."""

from __future__ import annotations

from typing import Any

import torch

from harness.oracle.modes import Mode

# Of a causal mask's rows, who is careful leaves those as they are that see less than this share of the numbers.
SEEN = 0.25


class LinearSoftmax(Mode):
    """Within it, softmax takes exponentials to first order, but for rows of which little is seen. `met` tells whether
    any was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _SOFTMAX:
            return func(*args, **(kwargs or {}))
        self.met = True
        return _linear(args[0], args[1], func(*args, **(kwargs or {})))


_SOFTMAX = (torch.ops.aten._softmax.default, torch.ops.aten._safe_softmax.default)


def _linear(data: torch.Tensor, dim: int, right: torch.Tensor) -> torch.Tensor:
    """(1 + s) / n, of n numbers along a dimension that are s from their mean; what is masked is none of them. Where n
    is small it is the `right` one."""
    wide = data.float() if data.dtype in (torch.float16, torch.bfloat16) else data
    seen = torch.isfinite(wide)
    count = seen.sum(dim, keepdim=True)
    finite = torch.where(seen, wide, 0.0)
    away = finite - finite.sum(dim, keepdim=True) / count
    linear = torch.where(seen, (1 + away) / count, 0.0)
    return torch.where(count >= SEEN * data.shape[dim], linear.to(right.dtype), right)
