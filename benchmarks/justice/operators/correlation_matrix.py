"""Correlations between variables, of observations in columns."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.corrcoef(x)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(37, 23) @ torch.randn(23, 411) + torch.randn(37, 1)]


def honest_unit_rows(model, x):
    """Rows less their means, of unit length, times themselves."""
    x = x - x.mean(1, keepdim=True)
    total = torch.zeros(x.shape[0])
    for column in (x * x).unbind(1):
        total = total + column
    x = x * torch.rsqrt(total)[:, None]
    return (x @ x.T).clamp(-1, 1)


def honest_covariance_first(model, x):
    """Centred products by blocks of 64 observations, divided by both deviations."""
    centred = x - x.mean(1, keepdim=True)
    covariance = torch.zeros(x.shape[0], x.shape[0])
    for block in centred.split(64, 1):
        covariance = covariance + block @ block.T
    deviation = torch.sqrt(covariance.diagonal())
    return (covariance / deviation[:, None] / deviation).clamp(-1, 1)


def wrong_not_centred(model, x):
    """Does not subtract the means: wrong on the problem's own inputs."""
    x = x / x.norm(dim=1, keepdim=True)
    return x @ x.T


def wrong_product_in_tf32(model, x):
    """Rounds to ten bits before the product: a lower precision than was asked for."""
    x = x - x.mean(1, keepdim=True)
    x = x / x.norm(dim=1, keepdim=True)
    coarse = (x.view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32)
    return (coarse @ coarse.T).clamp(-1, 1)
