"""Level 1, problem 19: ReLU."""

import torch

SIZES = {"batch_size": 33, "dim": 991}


def honest_fmax(model, x):
    """The larger of x and zero."""
    return torch.maximum(x, torch.zeros(()))


def honest_sign_mask(model, x):
    """Clears all bits where the sign bit is set, without a branch."""
    bits = x.contiguous().view(torch.int32)
    return (bits & ~(bits >> 31)).view(torch.float32)


def wrong_copies_the_input(model, x):
    """Copies, since torch.rand is never below zero: wrong on negative inputs."""
    return x.clone()


def wrong_no_tail_after_float4(model, x):
    """Whole float4 vectors only, so the last three elements stay zero: wrong on the problem's own inputs."""
    out = torch.relu(x)
    out.view(-1)[out.numel() // 4 * 4 :] = 0
    return out
