"""Level 1, problem 11: a 4D tensor times a matrix."""

import torch

SIZES = {"b": 3, "i": 4, "j": 17, "l": 129, "k": 133}


def honest_flat_rows(model, a, b):
    """All leading axes as rows of one matrix; K in tiles of 16."""
    rows = a.reshape(-1, a.shape[-1])
    acc = torch.zeros(rows.shape[0], b.shape[1])
    for k in range(0, rows.shape[1], 16):
        acc = acc + rows[:, k : k + 16] @ b[k : k + 16]
    return acc.view(*a.shape[:-1], b.shape[1])


def honest_even_and_odd(model, a, b):
    """Two accumulators, one for even and one for odd positions, added at the end."""
    return a[..., 0::2] @ b[0::2] + a[..., 1::2] @ b[1::2]


def wrong_batch_offset_missing(model, a, b):
    """The address of A leaves out the outermost index: wrong on the problem's own inputs."""
    return (a[:1] @ b).expand(a.shape[0], -1, -1, -1).contiguous()


def wrong_unscaled_half_parts(model, a, b):
    """High and low parts in half precision, whose range ends at 6e-8: wrong on inputs below 1e-3."""
    a_high, b_high = a.half().float(), b.half().float()
    a_low, b_low = (a - a_high).half().float(), (b - b_high).half().float()
    return (a_low @ b_high + a_high @ b_low) + a_high @ b_high
