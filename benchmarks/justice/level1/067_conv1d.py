"""Level 1, problem 67: 1D convolution."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "in_channels": 37, "out_channels": 41, "length": 517}


def _tf32(t):
    return ((t.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _columns(x, k):
    return x.unfold(2, k, 1).transpose(2, 3).flatten(1, 2)


def honest_shifted_matmuls(model, x):
    """One matrix product a tap on a shifted input."""
    weight = model.conv1d.weight
    n = x.shape[2] - weight.shape[2] + 1
    out = weight[:, :, 0] @ x[:, :, :n]
    for i in range(1, weight.shape[2]):
        out = out + weight[:, :, i] @ x[:, :, i : i + n]
    return out


def honest_three_tf32_products(model, x):
    """im2col with high and low TF32 parts of both sides; all but the product of the low parts."""
    weight = model.conv1d.weight
    w, c = weight.flatten(1), _columns(x, weight.shape[2])
    w_high, c_high = _tf32(w), _tf32(c)
    w_low, c_low = _tf32(w - w_high), _tf32(c - c_high)
    return (w_low @ c_high + w_high @ c_low) + w_high @ c_high


def wrong_bf16_operands(model, x):
    """im2col with both sides rounded to bf16: wrong on the problem's own inputs."""
    weight = model.conv1d.weight
    return weight.flatten(1).bfloat16().float() @ _columns(x, weight.shape[2]).bfloat16().float()


def wrong_no_halo(model, x):
    """Blocks of 128 outputs stage 128 inputs and read zeros beyond them: wrong on the problem's own inputs."""
    weight = model.conv1d.weight
    k = weight.shape[2]
    parts = [F.conv1d(F.pad(part, (0, k - 1)), weight) for part in x.split(128, 2)]
    return torch.cat(parts, 2)[:, :, : x.shape[2] - k + 1]
