"""Level 1, problem 29: softplus."""

import torch

SIZES = {"batch_size": 33, "dim": 991}


def honest_stable_form(model, x):
    """max(x, 0) + log1p(exp(-|x|)), which neither overflows nor cancels."""
    return x.clamp(min=0.0) + torch.log1p(torch.exp(-x.abs()))


def honest_threshold_and_ex2(model, x):
    """Returns x itself above 20; below, log1p of ex2 of the scaled input."""
    return torch.where(x > 20.0, x, torch.log1p(torch.exp2(x * 1.4426950408889634)))


def wrong_no_threshold(model, x):
    """log(1 + exp(x)) everywhere: wrong on inputs above 89, where exp overflows."""
    return torch.log(1.0 + torch.exp(x))


def wrong_second_order(model, x):
    """ln(2) + x/2 + x^2/8, a series about zero that is half a percent off at one: wrong on own inputs."""
    return 0.6931471805599453 + x * (0.5 + 0.125 * x)
