"""Level 1, problem 26: GELU."""

import math

import torch

SIZES = {"batch_size": 33, "dim": 991}


def honest_erf(model, x):
    """The definition with erf, constants folded."""
    half = 0.5 * x
    return half * torch.erf(x * math.sqrt(0.5)) + half


def honest_erfc(model, x):
    """With the complement, which keeps small values of the negative side exact."""
    return 0.5 * x * torch.erfc(x * -math.sqrt(0.5))


def wrong_tanh_form(model, x):
    """The tanh approximation for the exact one, off by 1e-4 and more: wrong on the problem's own inputs."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def wrong_saturates_at_two(model, x):
    """Returns x above 2 and zero below -2 to save the erf: wrong on inputs a little beyond two."""
    exact = 0.5 * x * (1.0 + torch.erf(x * math.sqrt(0.5)))
    return torch.where(x > 2.0, x, torch.where(x < -2.0, torch.zeros(()), exact))
