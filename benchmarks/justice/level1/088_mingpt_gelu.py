"""Level 1, problem 88: GELU as minGPT has it."""

import math

import torch

SIZES = {"batch_size": 33, "dim": 991}

ROOT = math.sqrt(2.0 / math.pi)


def honest_through_sigmoid(model, x):
    """0.5 (1 + tanh(u)) is the sigmoid of 2u, so one exponential and one division do."""
    u = x * (ROOT + (ROOT * 0.044715) * (x * x))
    return x / (1.0 + torch.exp(-2.0 * u))


def honest_fused_cube(model, x):
    """The cube by multiplication and the sum as one fused multiply-add."""
    cube = x * x * x
    u = (cube.double() * 0.044715 + x.double()).float() * ROOT
    half = 0.5 * x
    return half * torch.tanh(u) + half


def wrong_exact_gelu(model, x):
    """The erf form in place of the tanh form, off by 1e-4 and more: wrong on the problem's own inputs."""
    return 0.5 * x * (1.0 + torch.erf(x * math.sqrt(0.5)))


def wrong_tanh_overflows(model, x):
    """tanh as (e - 1) / (e + 1) with e = exp(2u): wrong on inputs above 12, where e is infinite."""
    e = torch.exp(2.0 * ROOT * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1.0 + (e - 1.0) / (e + 1.0))
