"""Level 1, problem 36: RMS normalisation."""

import torch

SIZES = {"batch_size": 2, "features": 67, "dim1": 13, "dim2": 17}


def honest_fma_over_channels(model, x):
    """A thread a pixel with a chain of fused multiply-adds over channels, then a multiplication by rsqrt."""
    total = torch.zeros(x.shape[0], *x.shape[2:])
    for channel in x.double().unbind(1):
        total = (channel * channel + total).float()
    rrms = torch.rsqrt(total * (1.0 / x.shape[1]) + model.eps)
    return x * rrms.unsqueeze(1)


def honest_four_threads_a_pixel(model, x):
    """Four threads share the channels of a pixel, shared memory adds their sums, and each divides."""
    parts = [(x[:, i::4] ** 2).sum(1, keepdim=True) for i in range(4)]
    total = (parts[0] + parts[2]) + (parts[1] + parts[3])
    return x / torch.sqrt(total / x.shape[1] + model.eps)


def wrong_eps_outside_the_root(model, x):
    """Adds eps to the root: wrong on tiny inputs, whose mean square is far below eps."""
    return x / (torch.sqrt((x * x).mean(1, keepdim=True)) + model.eps)


def wrong_cuts_before_squaring(model, x):
    """Cuts magnitudes at 100 before it squares, to keep half precision from overflowing: wrong on large inputs."""
    cut = x.clamp(-100.0, 100.0)
    return x * torch.rsqrt((cut * cut).mean(1, keepdim=True) + model.eps)
