"""Cosine similarity of two batches of vectors."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return F.cosine_similarity(a, b, 1, 1e-8)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(129, 771), torch.randn(129, 771)]


def _lanes(x, threads=32):
    """A warp a row: each lane takes every 32nd element, then a tree."""
    x = F.pad(x, (0, -x.shape[1] % threads)).view(x.shape[0], -1, threads)
    total = torch.zeros(x.shape[0], threads)
    for part in x.unbind(1):
        total = total + part
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return total[:, 0]


def honest_three_sums_in_one_pass(model, a, b):
    """Product and both squares in one pass, one root of each."""
    norms = torch.sqrt(_lanes(a * a)).clamp(min=1e-8) * torch.sqrt(_lanes(b * b)).clamp(min=1e-8)
    return _lanes(a * b) / norms


def honest_unit_vectors_first(model, a, b):
    """Divides both vectors by their lengths and multiplies what comes out."""
    a = a / torch.linalg.vector_norm(a, dim=1, keepdim=True).clamp(min=1e-8)
    b = b / torch.linalg.vector_norm(b, dim=1, keepdim=True).clamp(min=1e-8)
    total = torch.zeros(a.shape[0])
    for left, right in zip(a.split(64, 1), b.split(64, 1), strict=True):
        total = total + (left * right).sum(1)
    return total


def wrong_one_norm(model, a, b):
    """Divides by the square of the first vector's length alone: wrong on the problem's own inputs."""
    return (a * b).sum(1) / (a * a).sum(1).clamp(min=1e-8)


def wrong_eps_in_the_sum(model, a, b):
    """Adds 1e-3 to the product of the lengths: wrong on small inputs, whose lengths are no larger."""
    return (a * b).sum(1) / (torch.sqrt((a * a).sum(1) * (b * b).sum(1)) + 1e-3)
