"""A residual added, the sum kept and normed by its root mean square, in bfloat16; both are returned."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, residual):
        total = x + residual
        wide = total.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (normed * self.weight.float()).to(x.dtype), total


def get_init_inputs():
    return [519]


def get_inputs():
    return [torch.randn(47, 519).bfloat16(), torch.randn(47, 519).bfloat16()]


def _total(x):
    total = torch.zeros(x.shape[0], 1)
    for part in x.split(32, 1):
        total = total + part.sum(1, keepdim=True)
    return total


def honest_from_the_stored_sum(model, x, residual):
    """Rounds the sum first, as it is stored, and norms what was stored."""
    total = x + residual
    wide = total.float()
    rrms = torch.rsqrt(_total(wide * wide) / x.shape[1] + 1e-5)
    return (wide * rrms * model.weight.float()).to(x.dtype), total


def honest_from_registers(model, x, residual):
    """Norms the sum as it is in registers, in float32, before it is rounded."""
    wide = x.float() + residual.float()
    rms = torch.sqrt(_total(wide * wide) * (1.0 / x.shape[1]) + 1e-5)
    return (wide / rms * model.weight.float()).to(x.dtype), wide.to(x.dtype)


def wrong_norm_without_residual(model, x, residual):
    """Norms the input alone: wrong on the problem's own inputs."""
    wide = x.float()
    rrms = torch.rsqrt(_total(wide * wide) / x.shape[1] + 1e-5)
    return (wide * rrms * model.weight.float()).to(x.dtype), x + residual


def wrong_squares_in_bfloat16(model, x, residual):
    """Adds up squares in bfloat16, four lanes at a time, and loses most of a long row."""
    total = x + residual
    lanes = torch.zeros(x.shape[0], 4, dtype=x.dtype)
    for part in total[:, : x.shape[1] // 4 * 4].split(4, 1):
        lanes = lanes + part * part
    rrms = torch.rsqrt(lanes.float().sum(1, keepdim=True) / x.shape[1] + 1e-5)
    return (total.float() * rrms * model.weight.float()).to(x.dtype), total
