"""Adaptive average pooling to a size that does not divide the image's."""

import torch
import torch.nn.functional as F
from torch import nn

OUT = (5, 7)


class Model(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, OUT)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(3, 17, 33, 45)]


def _edges(i, out, length):
    return i * length // out, -(-(i + 1) * length // out)


def honest_bin_by_bin(model, x):
    """A thread a bin adds its rows up one after the other, and divides."""
    out = torch.empty(*x.shape[:2], *OUT)
    for i in range(OUT[0]):
        for j in range(OUT[1]):
            top, bottom = _edges(i, OUT[0], x.shape[2])
            left, right = _edges(j, OUT[1], x.shape[3])
            total = torch.zeros(x.shape[:2])
            for row in range(top, bottom):
                for column in range(left, right):
                    total = total + x[:, :, row, column]
            out[:, :, i, j] = total / ((bottom - top) * (right - left))
    return out


def honest_matrices_of_weights(model, x):
    """Two products with matrices that hold one over the bins' lengths."""
    sides = []
    for out, length in zip(OUT, x.shape[2:], strict=True):
        side = torch.zeros(out, length)
        for i in range(out):
            start, stop = _edges(i, out, length)
            side[i, start:stop] = 1.0 / (stop - start)
        sides.append(side)
    return sides[0] @ x @ sides[1].T


def wrong_bins_do_not_overlap(model, x):
    """Rounds the end of a bin down, so that bins do not overlap: wrong on the problem's own inputs."""
    rows = [x[:, :, i * x.shape[2] // OUT[0] : (i + 1) * x.shape[2] // OUT[0]].mean(2) for i in range(OUT[0])]
    x = torch.stack(rows, 2)
    columns = [x[..., j * x.shape[3] // OUT[1] : (j + 1) * x.shape[3] // OUT[1]].mean(3) for j in range(OUT[1])]
    return torch.stack(columns, 3)


def wrong_one_divisor(model, x):
    """Divides all bins by the size of the first: wrong on the problem's own inputs."""
    (_, bottom), (_, right) = _edges(0, OUT[0], x.shape[2]), _edges(0, OUT[1], x.shape[3])
    out = torch.empty(*x.shape[:2], *OUT)
    for i in range(OUT[0]):
        for j in range(OUT[1]):
            rows, columns = slice(*_edges(i, OUT[0], x.shape[2])), slice(*_edges(j, OUT[1], x.shape[3]))
            out[:, :, i, j] = x[:, :, rows, columns].sum((2, 3)) / (bottom * right)
    return out
