"""Level 1, problem 6: matrix multiplication with a large K."""

import torch

SIZES = {"M": 37, "N": 29, "K": 20011}


def honest_split_k_with_tree(model, a, b):
    """Sixty-four slices of K in blocks of their own; a second kernel adds them pairwise.

    Sums are near 5000 with a spread of 32, so an ulp of theirs is 1.5e-5 of the spread.
    """
    parts = [x @ y for x, y in zip(a.tensor_split(64, 1), b.tensor_split(64, 0), strict=True)]
    while len(parts) > 1:
        parts = [x + y for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def honest_compensated_slices(model, a, b):
    """One block walks K in slices of 128 and adds their products with Kahan's compensation."""
    total = torch.zeros(a.shape[0], b.shape[1])
    lost = torch.zeros_like(total)
    for k in range(0, a.shape[1], 128):
        y = a[:, k : k + 128] @ b[k : k + 128] - lost
        new = total + y
        lost = (new - total) - y
        total = new
    return total


def wrong_slices_race(model, a, b):
    """Slices add to the output without atomics, so one of 64 is lost in some tiles: wrong on own inputs."""
    parts = torch.stack([x @ y for x, y in zip(a.tensor_split(64, 1), b.tensor_split(64, 0), strict=True)])
    parts[17, 16:32, :16] = 0
    parts[40, :16, 16:] = 0
    return parts.sum(0)


def wrong_partial_products_in_bf16(model, a, b):
    """The workspace between the two kernels holds bf16: wrong on the problem's own inputs."""
    parts = [(x @ y).bfloat16() for x, y in zip(a.tensor_split(64, 1), b.tensor_split(64, 0), strict=True)]
    return torch.stack(parts).float().sum(0)
