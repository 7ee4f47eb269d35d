"""Level 1, problem 22: hyperbolic tangent."""

import torch

SIZES = {"batch_size": 33, "dim": 991}


def honest_polynomial_and_exponential(model, x):
    """An odd polynomial near zero and an exponential of the magnitude beyond, as CUDA's own tanhf has it."""
    z = x * x
    p = -5.70498872745e-3 * z + 2.06390887954e-2
    p = p * z - 5.37397155531e-2
    p = p * z + 1.33314422036e-1
    p = p * z - 3.33332819422e-1
    small = p * z * x + x
    large = torch.copysign(1.0 - 2.0 / (torch.exp(2.0 * x.abs()) + 1.0), x)
    return torch.where(x.abs() < 0.625, small, large)


def honest_expm1(model, x):
    """With e = expm1(-2|x|), -e / (e + 2) and the sign put back; nothing overflows or cancels."""
    e = torch.expm1(-2.0 * x.abs())
    return torch.copysign(-e / (e + 2.0), x)


def wrong_short_fraction(model, x):
    """The fraction x (27 + x^2) / (27 + 9 x^2), 2 % off at one: wrong on the problem's own inputs."""
    z = x * x
    return x * (27.0 + z) / (27.0 + 9.0 * z)


def wrong_sign_not_put_back(model, x):
    """Computes with the magnitude and leaves the sign out: wrong on negative inputs."""
    return 1.0 - 2.0 / (torch.exp(2.0 * x.abs()) + 1.0)
