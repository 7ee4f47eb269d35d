"""Bicubic upsampling to a size that is no multiple."""

import torch
import torch.nn.functional as F
from torch import nn

OUT = (29, 41)


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x, OUT, mode="bicubic", align_corners=False)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.rand(2, 7, 12, 17)]


def _weights(length, out, sharpness=-0.75, corners=False):
    """Four neighbours and their weights for each of `out` places, as a matrix."""
    places = torch.arange(out, dtype=torch.float64)
    source = places * (length - 1) / (out - 1) if corners else (places + 0.5) * (length / out) - 0.5
    base, side = source.floor(), torch.zeros(out, length)
    for offset in range(-1, 3):
        away = (source - base - offset).abs()
        near = ((sharpness + 2) * away - (sharpness + 3)) * away * away + 1
        far = ((away - 5) * away + 8) * away * sharpness - 4 * sharpness
        weight = torch.where(away <= 1, near, far).float()
        column = (base + offset).clamp(0, length - 1).long()
        side[torch.arange(out), column] += weight
    return side


def honest_matrices_of_weights(model, x):
    """Rows first, then columns, as two products."""
    return _weights(x.shape[2], OUT[0]) @ x @ _weights(x.shape[3], OUT[1]).T


def honest_columns_first(model, x):
    """Columns first, one neighbour after the other."""
    across = _weights(x.shape[3], OUT[1])
    wide = torch.zeros(*x.shape[:3], OUT[1])
    for column in range(x.shape[3]):
        wide = wide + x[..., column : column + 1] * across[:, column]
    return torch.einsum("oh,nchw->ncow", _weights(x.shape[2], OUT[0]), wide)


def wrong_other_sharpness(model, x):
    """-0.5 for -0.75, as other libraries have it: wrong on the problem's own inputs."""
    return _weights(x.shape[2], OUT[0], -0.5) @ x @ _weights(x.shape[3], OUT[1], -0.5).T


def wrong_aligned_corners(model, x):
    """The corners of both images on each other: wrong on the problem's own inputs."""
    down, across = _weights(x.shape[2], OUT[0], corners=True), _weights(x.shape[3], OUT[1], corners=True)
    return down @ x @ across.T
