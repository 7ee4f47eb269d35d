"""Level 1, problem 90: cumulative product."""

import torch

SIZES = {"batch_size": 11, "input_shape": (2003,)}


def honest_running_product(model, x):
    """A thread a row and a plain running product."""
    total = torch.ones(x.shape[0])
    out = []
    for column in x.unbind(1):
        total = total * column
        out.append(total)
    return torch.stack(out, 1)


def honest_short_chunks(model, x):
    """Threads scan eight elements each, and each chunk is multiplied by the product of all before it."""
    carry = torch.ones(x.shape[0], 1)
    out = []
    for chunk in x.split(8, 1):
        local = [chunk[:, :1]]
        for i in range(1, chunk.shape[1]):
            local.append(local[-1] * chunk[:, i : i + 1])
        out.append(carry * torch.cat(local, 1))
        carry = out[-1][:, -1:]
    return torch.cat(out, 1)


def wrong_through_logarithms(model, x):
    """Sums logarithms and takes the exponential: wrong on negative inputs, whose logarithm is not a number."""
    return torch.exp(torch.cumsum(torch.log(x), 1))


def wrong_blocks_start_afresh(model, x):
    """Each block of 512 starts from one again: wrong on the problem's own inputs."""
    return torch.cat([torch.cumprod(block, 1) for block in x.split(512, 1)], 1)
