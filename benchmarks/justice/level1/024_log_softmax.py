"""Level 1, problem 24: log-softmax."""

import torch

SIZES = {"batch_size": 6, "dim": 5003}


def honest_online_logsumexp(model, x):
    """Each block keeps a maximum and a sum; pairs are merged, and the log of the sum is subtracted."""
    top = torch.full((x.shape[0], 1), -torch.inf)
    total = torch.zeros(x.shape[0], 1)
    for block in x.split(512, 1):
        block_top = block.amax(1, keepdim=True)
        block_total = torch.exp(block - block_top).sum(1, keepdim=True)
        new = torch.maximum(top, block_top)
        total = total * torch.exp(top - new) + block_total * torch.exp(block_top - new)
        top = new
    return (x - top) - torch.log(total)


def honest_base_two(model, x):
    """Works with powers and logs of two: ex2 of the scaled difference, lg2 times ln(2)."""
    shifted = x - x.amax(1, keepdim=True)
    total = torch.exp2(shifted * 1.4426950408889634).sum(1, keepdim=True)
    return shifted - torch.log2(total) * 0.6931471805599453


def wrong_maximum_starts_at_zero(model, x):
    """The maximum starts at 0, so all exponentials vanish for very negative rows: wrong on inputs below -110."""
    top = x.amax(1, keepdim=True).clamp(min=0.0)
    return (x - top) - torch.log(torch.exp(x - top).sum(1, keepdim=True))


def wrong_last_block_not_summed(model, x):
    """Only whole blocks of 1024 enter the sum: wrong on the problem's own inputs."""
    top = x.amax(1, keepdim=True)
    whole = x.shape[1] // 1024 * 1024
    return (x - top) - torch.log(torch.exp(x[:, :whole] - top).sum(1, keepdim=True))
