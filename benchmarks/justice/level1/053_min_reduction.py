"""Level 1, problem 53: minimum over one dimension."""

import torch

SIZES = {"batch_size": 5, "dim1": 3001, "dim2": 67}


def honest_halving(model, x):
    """Compares the first half of the rows with the second until one is left."""
    while x.shape[1] > 1:
        half = (x.shape[1] + 1) // 2
        x = torch.minimum(x[:, :half], x[:, x.shape[1] - half :])
    return x[:, 0].clone()


def honest_integer_atomics(model, x):
    """Maps floats to integers of the same order, so that atomicMin on integers finds the smallest."""
    bits = (x + 0.0).view(torch.int32)
    low = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).amin(1)
    return torch.where(low < 0, low ^ 0x7FFFFFFF, low).view(torch.float32)


def wrong_starts_at_one(model, x):
    """The minimum starts at 1, since torch.rand is below it: wrong on inputs above one."""
    return torch.minimum(torch.ones(()), x.amin(1))


def wrong_last_rows_not_read(model, x):
    """Whole blocks of 256 rows only: wrong on the problem's own inputs where the smallest lies in the rest."""
    return x[:, : x.shape[1] // 256 * 256].amin(1)
