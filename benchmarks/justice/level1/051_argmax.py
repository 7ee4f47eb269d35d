"""Level 1, problem 51: argmax over one dimension."""

import torch

SIZES = {"batch_size": 3, "dim1": 1003, "dim2": 57}


def honest_block_winners(model, x):
    """Blocks of 128 rows leave their largest value and its first row; a second pass keeps the larger."""
    best = torch.full((x.shape[0], x.shape[2]), -torch.inf)
    where = torch.zeros(x.shape[0], x.shape[2], dtype=torch.int64)
    for start in range(0, x.shape[1], 128):
        value, row = x[:, start : start + 128].max(1)
        better = value > best
        best = torch.where(better, value, best)
        where = torch.where(better, row + start, where)
    return where


def honest_packed_key(model, x):
    """Ordered bits of the value above, the complement of the row below, in one 64-bit atomic maximum."""
    bits = (x + 0.0).view(torch.int32).long()
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    low = 0xFFFFFFFF - torch.arange(x.shape[1]).view(1, -1, 1)
    key = (ordered * (1 << 32) + low).amax(1)
    return 0xFFFFFFFF - (key & 0xFFFFFFFF)


def wrong_starts_at_zero(model, x):
    """The best value starts at 0 with row 0: wrong on negative inputs."""
    value, row = x.max(1)
    return torch.where(value > 0.0, row, torch.zeros_like(row))


def wrong_compares_in_half(model, x):
    """Rounds to half precision, where several rows tie at the top: wrong on the problem's own inputs."""
    return x.half().float().argmax(1)
