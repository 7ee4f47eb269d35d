"""Bilinear samples of an image at points between pixels, zero outside of it."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 7, 19, 23), torch.rand(2, 17, 13, 2) * 2.2 - 1.1]


def _sampled(x, grid, corners=False, border=False, by_row=False):
    n, c, h, w = x.shape
    if corners:
        px, py = (grid[..., 0] + 1) * ((w - 1) / 2), (grid[..., 1] + 1) * ((h - 1) / 2)
    else:
        px, py = ((grid[..., 0] + 1) * w - 1) / 2, ((grid[..., 1] + 1) * h - 1) / 2
    left, top = px.floor(), py.floor()
    fx, fy = px - left, py - top

    def at(column, row):
        inside = (column >= 0) & (column < w) & (row >= 0) & (row < h)
        place = row.clamp(0, h - 1).long() * w + column.clamp(0, w - 1).long()
        found = x.flatten(2).gather(2, place.flatten(1)[:, None].expand(-1, c, -1)).view(n, c, *place.shape[1:])
        return found if border else found * inside[:, None]

    fx, fy = fx[:, None], fy[:, None]
    a, b = at(left, top), at(left + 1, top)
    d, e = at(left, top + 1), at(left + 1, top + 1)
    if by_row:
        upper, lower = a + fx * (b - a), d + fx * (e - d)
        return upper + fy * (lower - upper)
    return a * ((1 - fx) * (1 - fy)) + b * (fx * (1 - fy)) + d * ((1 - fx) * fy) + e * (fx * fy)


def honest_four_weights(model, x, grid):
    """Four weights that are products, added up in turn."""
    return _sampled(x, grid)


def honest_row_then_column(model, x, grid):
    """Two interpolations along rows and one between them."""
    return _sampled(x, grid, by_row=True)


def wrong_aligned_corners(model, x, grid):
    """Takes -1 and 1 for the centres of the outermost pixels: wrong on the problem's own inputs."""
    return _sampled(x, grid, corners=True)


def wrong_border_for_zeros(model, x, grid):
    """Repeats the border where zeros belong: wrong on the problem's own inputs, of which some lie outside."""
    return _sampled(x, grid, border=True)
