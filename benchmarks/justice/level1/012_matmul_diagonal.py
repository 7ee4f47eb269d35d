"""Level 1, problem 12: a diagonal matrix times a matrix."""

import torch

SIZES = {"M": 503, "N": 503}


def honest_flat_index(model, a, b):
    """One thread an element; the row is the flat index divided by the width."""
    row = torch.arange(b.numel()) // b.shape[1]
    return (a[row] * b.reshape(-1)).view(b.shape)


def honest_dense_product(model, a, b):
    """Builds the diagonal matrix in shared memory and multiplies; all other terms are exact zeros."""
    return torch.diag(a) @ b


def wrong_row_through_a_reciprocal(model, a, b):
    """Takes the row as flat index times float32 1/width, one too low at some row starts: wrong on own inputs."""
    row = (torch.arange(b.numel()).float() * (1.0 / torch.tensor(float(b.shape[1])))).long()
    return (a[row] * b.reshape(-1)).view(b.shape)


def wrong_scales_columns(model, a, b):
    """Scales columns in place of rows, which a square shape hides: wrong on the problem's own inputs."""
    return b * a
