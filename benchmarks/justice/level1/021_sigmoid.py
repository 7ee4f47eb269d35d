"""Level 1, problem 21: sigmoid."""

import torch

SIZES = {"batch_size": 33, "dim": 991}


def honest_through_tanh(model, x):
    """The identity with tanh of half the input; its error is an ulp of 0.5."""
    return 0.5 * torch.tanh(0.5 * x) + 0.5


def honest_ex2_and_rcp(model, x):
    """The exponential as ex2 of x * log2(e) rounded to float32, then a reciprocal."""
    return torch.reciprocal(1.0 + torch.exp2(x * -1.4426950408889634))


def wrong_overflowing_form(model, x):
    """exp(x) / (1 + exp(x)) is inf / inf for large x: wrong on inputs above 89."""
    e = torch.exp(x)
    return e / (1.0 + e)


def wrong_series_for_small_inputs(model, x):
    """A Taylor series to the ninth power, made for inputs from 0 to 1: wrong on inputs beyond two."""
    z = x * x
    return 0.5 + x * (1 / 4 + z * (-1 / 48 + z * (1 / 480 + z * (-17 / 80640 + z * (31 / 1451520)))))
