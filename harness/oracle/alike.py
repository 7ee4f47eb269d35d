"""The fast check of many outputs at once, since a card waits for the host between two of them.

For each it does what `fast.quick` does for one, by the same formulas (`scale.scale_of`, `error.measure`), over a first
dimension that counts the outputs. What it cannot tell (fill values, a bulk beside far larger elements, numbers that are
not finite or whose squares are not) it does not accept, and the check of a single output decides.
"""

from __future__ import annotations

import math

import torch

from harness.oracle import left_out, rule
from harness.oracle.error import is_small
from harness.oracle.fast import Fast
from harness.oracle.formats import format_of
from harness.oracle.scale import CONSTANT, PAIRS
from harness.oracle.shared_errors import SharedErrors, lines
from harness.oracle.slices import SHORTEST_ROW, matrix, real, sample, widened


def accepted(got: torch.Tensor, native: torch.Tensor, fast: Fast) -> torch.Tensor:
    """Which of n outputs are near enough to the reference's own: (n,), bool. Both are (n, ...), of one dtype."""
    if fast.fills or math.isfinite(fast.limits.bulk):
        return torch.zeros(len(got), dtype=torch.bool, device=got.device)
    own = real(native) if native.dtype is torch.float32 else widened(native)
    rows, columns = matrix(own[0]).shape
    y = own.reshape(len(own), rows, columns)
    g = real(got).reshape(y.shape)
    scale = _Scales(y, own.shape[1:])
    difference = g - y
    count = rows * columns
    norm = torch.minimum(torch.full_like(scale.spread, fast.limits.norm), fast.norm_share * scale.spread)
    error = torch.minimum(torch.full_like(scale.spread, fast.own), fast.own_share * scale.spread)
    near = torch.ones_like(scale.usual)
    if math.isfinite(fast.limits.shared):
        shape = lines(own[0])
        found, whole = SharedErrors(shape[0], shape[1], y.device, (len(y),)), slice(None)
        away = y - scale.center.to(y.dtype)[:, None, None]
        found.add(whole, whole, difference.reshape(-1, *shape), away.reshape(-1, *shape))
        of_it = found.sizes()
        near &= of_it.shared <= (fast.shared_share * scale.spread).clamp_max(fast.limits.shared)
        apart = (fast.apart_share * scale.spread).clamp_max(fast.limits.apart)
        near &= of_it.apart <= torch.hypot(apart, error)
    if math.isfinite(fast.limits.small):
        within = is_small(y, fast.limits.small_size)
        of_small = difference.masked_fill(~within, 0.0).square().sum((1, 2), dtype=torch.float64)
        small = (fast.small_share * scale.spread).clamp_max(fast.limits.small)
        most = torch.hypot(small, small / rule.SMALL)
        near &= (of_small / within.sum((1, 2)).clamp_min(1)).sqrt() <= most
    squares = difference.square().sum((1, 2), dtype=torch.float64)
    allowed = _allowed(y, scale, fast)
    difference = (difference / allowed).abs_()
    of_row = difference.square().sum(2, dtype=torch.float64)
    near &= (squares / count).sqrt() <= torch.hypot(norm, error)
    near &= (of_row.sum(1) / count).sqrt() <= fast.limits.scaled
    near &= (of_row.amax(1) / columns).sqrt() <= fast.limits.row
    if left_out.tells(own[0]):
        lacks = left_out.share(real(got), own, own)
        near &= ~lacks.beyond(error.clamp_min(fast.expected.smallest))
    # Where a number is NaN, no comparison holds.
    return near & (difference.amax((1, 2)) <= fast.limits.worst) & scale.usual


class _Scales:
    """`scale.Scale` of each of n matrices, (n, rows, columns), of outputs of that `shape`; `usual` where squares stay
    within float32."""

    def __init__(self, y: torch.Tensor, shape: torch.Size) -> None:
        rows = y.shape[1]
        flat = y.reshape(len(y), -1)
        picked = flat[:, sample(flat.shape[1], y.device, PAIRS)]
        center = picked.median(1).values.double()
        self.center = center
        away = y - center.to(y.dtype)[:, None, None]
        total = away.sum((1, 2), dtype=torch.float64) / flat.shape[1]
        square = away.square().sum((1, 2), dtype=torch.float64) / flat.shape[1]
        variance = (square - total.square()).clamp_min(0.0)
        size = (square + center * (2 * total + center)).clamp_min(0.0).sqrt()
        away.abs_()
        row, col = away.mean(2, dtype=torch.float64), away.mean(1, dtype=torch.float64)
        level = row.mean(1)
        constant = variance.sqrt() <= CONSTANT * format_of(y.dtype).roundoff * size
        if flat.shape[1] == 1:
            constant = torch.ones_like(constant)
        if rows < SHORTEST_ROW:
            col = level[:, None].expand_as(col)
            if len(shape) > 1 and 1 < shape[-1] < SHORTEST_ROW <= flat.shape[1] // shape[-1]:
                col = _periodic(y, shape[-1])
        least = (format_of(y.dtype).roundoff * level)[:, None]
        row, col = (torch.where(sizes < least, level[:, None], sizes) for sizes in (row, col))
        self.spread = torch.where(constant, size, variance.sqrt())
        self.level = torch.where(constant, size, level)
        self.row = torch.where(constant[:, None], size[:, None], row)
        self.col = torch.where(constant[:, None], size[:, None], col)
        # As scale.in_range, and with nothing that is not finite.
        self.usual = torch.isfinite(square) & ((square == 0) | ((square > 1e-24) & (square < 1e24)))


def _periodic(y: torch.Tensor, period: int) -> torch.Tensor:
    """As `scale._periodic`, (n, columns)."""
    flat = y.reshape(len(y), -1, period)
    picked = flat[:, sample(flat.shape[1], y.device, PAIRS)].double()
    size = (picked - picked.median(1, keepdim=True).values).abs().mean(1)
    return size.repeat(1, y.shape[2] // period)


def _allowed(y: torch.Tensor, scale: _Scales, fast: Fast) -> torch.Tensor:
    """The error expected at each element, as `error._allowed`."""
    expected = fast.expected
    share = torch.where(scale.level > 0, expected.relative / scale.level, 0.0)
    rows = (scale.row * share[:, None]).to(y.dtype)[:, :, None]
    least = rows * scale.col.to(y.dtype)[:, None, :] + expected.smallest
    return least.add_(y.abs(), alpha=expected.own)
