"""Level 1, problem 18: matrix multiplication with both transposed."""

import torch

SIZES = {"M": 179, "K": 511, "N": 179}


def honest_transposed_store(model, a, b):
    """Multiplies B by A in tiles of 32 along K and stores the transpose."""
    acc = torch.zeros(b.shape[0], a.shape[1])
    for k in range(0, a.shape[0], 32):
        acc = acc + b[:, k : k + 32] @ a[k : k + 32]
    return acc.T.contiguous()


def honest_fma_chain(model, a, b):
    """One thread an output and a chain of fused multiply-adds along K.

    Its error is that of 511 roundings of a sum 25 times its spread.
    """
    a, b = a.double(), b.double()
    acc = torch.zeros(a.shape[1], b.shape[0])
    for k in range(a.shape[0]):
        acc = torch.addr(acc.double(), a[k], b[:, k]).float()
    return acc


def wrong_not_transposed_back(model, a, b):
    """Multiplies B by A and forgets to transpose, which equal M and N hide: wrong on the problem's own inputs."""
    return b @ a


def wrong_accumulates_in_bf16(model, a, b):
    """The accumulators are rounded to bf16 after each tile of 32: wrong on the problem's own inputs."""
    acc = torch.zeros(a.shape[1], b.shape[0])
    for k in range(0, a.shape[0], 32):
        acc = (acc + a[k : k + 32].T @ b[:, k : k + 32].T).bfloat16().float()
    return acc
