"""Level 1, problem 27: SELU."""

import torch

SIZES = {"batch_size": 33, "dim": 991}

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805


def honest_folded_constants(model, x):
    """A branch by sign; the product of the two constants is folded into one."""
    return torch.where(x > 0.0, SCALE * x, (SCALE * ALPHA) * torch.expm1(x))


def honest_expm1_through_tanh(model, x):
    """Without a branch: expm1 of the negative part is 2t / (1 - t) with t = tanh(x / 2)."""
    t = torch.tanh(0.5 * x.clamp(max=0.0))
    return SCALE * (x.clamp(min=0.0) + ALPHA * (2.0 * t / (1.0 - t)))


def wrong_linear(model, x):
    """Only scales, since torch.rand is never below zero: wrong on negative inputs."""
    return SCALE * x


def wrong_short_constants(model, x):
    """Constants typed with three digits: wrong on the problem's own inputs."""
    return 1.05 * torch.where(x > 0.0, x, 1.67 * torch.expm1(x))
