"""Level 1, problem 14: product of upper triangular matrices."""

import torch

SIZES = {"N": 179}


def honest_skips_zero_tiles(model, a, b):
    """Only tiles on and above the diagonal, and for each only the K between its row and its column."""
    n, tile = a.shape[0], 64
    out = torch.zeros(n, n)
    for i in range(0, n, tile):
        for j in range(i, n, tile):
            acc = torch.zeros_like(out[i : i + tile, j : j + tile])
            for k in range(i, j + tile, tile):
                acc = acc + a[i : i + tile, k : k + tile] @ b[k : k + tile, j : j + tile]
            out[i : i + tile, j : j + tile] = acc
    return out


def honest_masked_running_sum(model, a, b):
    """One thread an output: a plain running sum over K, zero stored below the diagonal."""
    acc = torch.zeros_like(a)
    for k in range(a.shape[1]):
        acc.addr_(a[:, k], b[k])
    return acc.triu()


def wrong_stops_before_the_diagonal(model, a, b):
    """The loop over K runs up to but not through the column: wrong on the problem's own inputs."""
    return (a @ (b - torch.diag(b.diagonal()))).triu()


def wrong_lower_half_unwritten(model, a, b):
    """Never writes below the diagonal, where old memory (here A transposed) shows: wrong on own inputs."""
    return (a @ b).triu() + a.T.tril(-1)
