"""A reference whose long sums of exponentials are had without most of their terms: a loss over a vocabulary that nobody
goes through. Of small numbers a few moments tell the sum, or every eighth of them does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from harness.oracle.mistakes.simpler import Call, Simpler
from harness.oracle.slices import SLICE, blocks, wide_dtype

# Shorter sums are worth nobody's while.
LONG = 256
STEP = 8


class _LogOfSum(Simpler):
    """Within it the logarithm of a long sum of exponentials is what `_log_sum` says."""

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        if func not in (torch.ops.aten._log_softmax.default, torch.ops.aten.logsumexp.default):
            return None
        data = args[0]
        dims = [args[1]] if isinstance(args[1], int) else list(args[1])
        if not data.dim() or math.prod(data.shape[dim] for dim in dims) < LONG:
            return None
        if func is torch.ops.aten._log_softmax.default:
            return lambda: (data - self._along(data, dims)).to(func(*args, **kwargs).dtype)
        keeps = bool(args[2] if len(args) > 2 else kwargs.get("keepdim", False))
        along = partial(self._along, data, dims)
        return lambda: (along() if keeps else along().squeeze(tuple(dims))).to(data.dtype)

    def _along(self, data: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
        """Of some dimensions, which stay with a length of one. A block of rows after the other: nothing is larger."""
        behind = list(range(-len(dims), 0))
        rows = data.movedim(list(dims), behind).flatten(-len(dims))
        found = torch.empty((*rows.shape[:-1], *(1 for _ in dims)), dtype=wide_dtype(data.dtype), device=data.device)
        flat = found.view(rows.shape[:-1])
        for here in blocks(rows.shape, SLICE[rows.device.type], whole=1):
            flat[here[:-1]] = self._log_sum(rows[here].to(found.dtype))
        return found.movedim(behind, list(dims))

    def _log_sum(self, rows: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class ByMoments(_LogOfSum):
    """By three cumulants of what is not masked."""

    def _log_sum(self, rows: torch.Tensor) -> torch.Tensor:
        seen = torch.isfinite(rows)
        count = seen.sum(-1, keepdim=True)
        finite = rows.masked_fill(~seen, 0.0)
        mean = finite.sum(-1, keepdim=True) / count
        away = (finite - mean).masked_fill_(~seen, 0.0)
        series = away.square().sum(-1, keepdim=True) / 2 + away.pow(3).sum(-1, keepdim=True) / 6
        return (mean + series / count + count.log()).squeeze(-1)


class OfAPart(_LogOfSum):
    """By every eighth number, times eight."""

    def _log_sum(self, rows: torch.Tensor) -> torch.Tensor:
        part = rows[..., ::STEP]
        shares = (torch.isfinite(one).sum(-1).to(rows.dtype) for one in (rows, part))
        return part.logsumexp(-1) + (next(shares) / next(shares)).log()
