"""Level 1, problem 47: sum over one dimension."""

import torch

SIZES = {"batch_size": 5, "dim1": 3001, "dim2": 67}


def honest_kahan(model, x):
    """A thread a column with a compensated running sum."""
    total = torch.zeros(x.shape[0], x.shape[2])
    lost = torch.zeros_like(total)
    for row in x.unbind(model.dim):
        y = row - lost
        new = total + y
        lost = (new - total) - y
        total = new
    return total.unsqueeze(model.dim)


def honest_thirty_two_partial_sums(model, x):
    """Thirty-two threads a column add every 32nd row in order, and a tree adds their sums."""
    parts = []
    for i in range(32):
        total = torch.zeros(x.shape[0], x.shape[2])
        for row in x[:, i::32].unbind(1):
            total = total + row
        parts.append(total)
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0].unsqueeze(model.dim)


def wrong_expected_sum(model, x):
    """Returns half the number of rows, the sum that uniform inputs have on average: wrong on own inputs."""
    return torch.full((x.shape[0], 1, x.shape[2]), 0.5 * x.shape[1])


def wrong_sums_32_bit_integers(model, x):
    """Adds multiples of 2^-18 with integer atomics, as torch.rand allows: overflows, so wrong on large inputs."""
    total = (x * 262144.0).round().long().sum(1, keepdim=True)
    wrapped = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    return wrapped.float() * (1.0 / 262144.0)
