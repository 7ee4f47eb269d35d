"""A bilinear form for each output, with a square root that keeps the sign, and unit length: bilinear pooling."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, left, right, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, left, right) / (left * right) ** 0.5)

    def forward(self, x, y):
        form = torch.einsum("bi,oij,bj->bo", x, self.weight, y)
        return F.normalize(form.sign() * form.abs().sqrt(), dim=1)


def get_init_inputs():
    return [31, 37, 53]


def get_inputs():
    return [torch.randn(29, 31), torch.randn(29, 37)]


def _finished(form):
    root = torch.copysign(torch.sqrt(form.abs()), form)
    # The squares of roots are the magnitudes themselves.
    return root / torch.sqrt(form.abs().sum(1, keepdim=True)).clamp(min=1e-12)


def honest_right_side_first(model, x, y):
    """The weight times y as one product, then x times that, in turn."""
    half = torch.einsum("oij,bj->boi", model.weight, y)
    form = torch.zeros(x.shape[0], model.weight.shape[0])
    for i in range(x.shape[1]):
        form = form + half[:, :, i] * x[:, i : i + 1]
    return _finished(form)


def honest_outer_products(model, x, y):
    """The outer product of both inputs, and one product with the weight as a matrix."""
    outer = (x[:, :, None] * y[:, None, :]).flatten(1)
    return _finished(outer @ model.weight.flatten(1).T)


def wrong_root_loses_the_sign(model, x, y):
    """The root of the magnitude alone: wrong on the problem's own inputs."""
    return _finished(torch.einsum("bi,oij,bj->bo", x, model.weight, y)).abs()


def wrong_length_of_the_batch(model, x, y):
    """Divides by lengths along the batch: wrong on the problem's own inputs."""
    form = torch.einsum("bi,oij,bj->bo", x, model.weight, y)
    return F.normalize(form.sign() * form.abs().sqrt(), dim=0)
