"""Two activations of one tensor, the one gating the other, and a softplus of both added."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, -1)
        return F.mish(left) * F.hardswish(right) + F.softplus(left + right)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(33, 2 * 251) * 2]


def honest_logarithm_of_one_plus(model, x):
    """Softplus as max(x, 0) + log1p(exp(-|x|)), the same for mish, hardswish by cases."""

    def softplus(t):
        return t.clamp(min=0) + torch.log1p(torch.exp(-t.abs()))

    left, right = x.chunk(2, -1)
    hard = torch.where(right <= -3, 0.0, torch.where(right >= 3, right, right * (right + 3) / 6))
    return left * torch.tanh(softplus(left)) * hard + softplus(left + right)


def honest_mish_without_a_logarithm(model, x):
    """tanh(log(1 + e^x)) as (e^2x + 2 e^x) / (e^2x + 2 e^x + 2), of x up to 20; softplus is x itself above 20."""
    left, right = x.chunk(2, -1)
    e = torch.exp(left.clamp(max=20.0))
    n = e * (e + 2.0)
    mish = torch.where(left > 20, left, left * (n / (n + 2.0)))
    both = left + right
    soft = torch.where(both > 20, both, torch.log1p(torch.exp(both.clamp(max=20.0))))
    return torch.addcmul(soft, mish, right * (right + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0))


def wrong_swish_for_mish(model, x):
    """x times the sigmoid in place of mish: wrong on the problem's own inputs."""
    left, right = x.chunk(2, -1)
    return F.silu(left) * F.hardswish(right) + F.softplus(left + right)


def wrong_softplus_overflows(model, x):
    """log(1 + e^x) without a threshold: infinite on inputs above 88."""
    left, right = x.chunk(2, -1)
    return F.mish(left) * F.hardswish(right) + torch.log1p(torch.exp(left + right))
