"""Level 1, problem 89: cumulative sum."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 7, "input_shape": (4099,)}


def _block_scan(t):
    step = 1
    while step < t.shape[-1]:
        t = torch.cat([t[..., :step], t[..., step:] + t[..., :-step]], -1)
        step *= 2
    return t


def _blocks(x, size):
    return F.pad(x, (0, -x.shape[1] % size)).view(x.shape[0], -1, size)


def honest_blocks_with_carry(model, x):
    """Scans blocks of 256 by doubling distances and carries each block's total into the next."""
    blocks = _block_scan(_blocks(x, 256))
    carry = torch.zeros(x.shape[0], 1)
    out = []
    for block in blocks.unbind(1):
        out.append(block + carry)
        carry = carry + block[:, -1:]
    return torch.cat(out, 1)[:, : x.shape[1]]


def honest_running_sum(model, x):
    """A thread a row and a plain running sum, whose error stays ulps of the sum itself."""
    total = torch.zeros(x.shape[0])
    out = []
    for column in x.unbind(1):
        total = total + column
        out.append(total)
    return torch.stack(out, 1)


def wrong_carry_of_one_block_only(model, x):
    """Adds the total of the block before, not of all before: wrong on the problem's own inputs."""
    blocks = _block_scan(_blocks(x, 256))
    blocks[:, 1:] += blocks[:, :-1, -1:].clone()
    return blocks.flatten(1)[:, : x.shape[1]]


def wrong_carry_in_half(model, x):
    """Passes the carry between blocks as half precision: wrong on the problem's own inputs."""
    blocks = _block_scan(_blocks(x, 256))
    carry = torch.zeros(x.shape[0], 1)
    out = []
    for block in blocks.unbind(1):
        out.append(block + carry)
        carry = (carry + block[:, -1:]).half().float()
    return torch.cat(out, 1)[:, : x.shape[1]]
