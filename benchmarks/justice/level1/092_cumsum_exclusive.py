"""Level 1, problem 92: exclusive cumulative sum."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 9, "input_shape": (3001,)}


def honest_running_sum(model, x):
    """A thread a row stores the sum before it adds the element."""
    total = torch.zeros(x.shape[0])
    out = []
    for column in x.unbind(1):
        out.append(total)
        total = total + column
    return torch.stack(out, 1)


def honest_up_and_down_sweep(model, x):
    """Blelloch's scan over the row, zero-filled to a power of two: sums up a tree, then prefixes down it."""
    n = 1 << (x.shape[1] - 1).bit_length()
    levels = [F.pad(x, (0, n - x.shape[1]))]
    while levels[-1].shape[1] > 1:
        levels.append(levels[-1][:, ::2] + levels[-1][:, 1::2])
    prefix = torch.zeros(x.shape[0], 1)
    for level in reversed(levels[:-1]):
        prefix = torch.stack([prefix, prefix + level[:, ::2]], 2).flatten(1)
    return prefix[:, : x.shape[1]].contiguous()


def wrong_inclusive(model, x):
    """Stores the sum after the element was added: wrong on the problem's own inputs."""
    return torch.cumsum(x, 1)


def wrong_carry_lacks_the_last_element(model, x):
    """Takes a block's last prefix for its total, one element short every 512: wrong on own inputs."""
    carry = torch.zeros(x.shape[0], 1)
    out = []
    for block in x.split(512, 1):
        local = torch.cumsum(F.pad(block, (1, 0)), 1)[:, :-1] + carry
        out.append(local)
        carry = local[:, -1:]
    return torch.cat(out, 1)
