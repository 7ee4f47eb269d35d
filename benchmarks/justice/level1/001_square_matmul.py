"""Level 1, problem 1: square matrix multiplication."""

import torch

SIZES = {"N": 307}


def _tf32(t):
    return ((t.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def honest_k_tiles_of_32(model, a, b):
    """Stages tiles of 32 along K and adds each tile's product to float32 accumulators."""
    acc = torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 32):
        acc = acc + a[:, k : k + 32] @ b[k : k + 32]
    return acc


def honest_three_tf32_products(model, a, b):
    """Splits both into a high and a low TF32 part and adds three products, the small ones first."""
    a_high, b_high = _tf32(a), _tf32(b)
    a_low, b_low = _tf32(a - a_high), _tf32(b - b_high)
    return (a_low @ b_high + a_high @ b_low) + a_high @ b_high


def wrong_raw_bits_to_tensor_cores(model, a, b):
    """Hands float32 bits to TF32 tensor cores, which drop the low 13: wrong on the problem's own inputs."""
    a = (a.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    b = (b.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    return a @ b


def wrong_stores_the_transpose(model, a, b):
    """Swaps row and column when it stores, which a square shape hides: wrong on the problem's own inputs."""
    return (a @ b).T.contiguous()
