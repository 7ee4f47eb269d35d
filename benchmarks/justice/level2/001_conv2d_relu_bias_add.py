"""Level 2, problem 1: convolution, ReLU, bias."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "out_channels": 13, "height": 19, "width": 23, "bias_shape": (13, 1, 1)}


def _tf32(t):
    """Round to the 10 mantissa bits of TF32, ties to even."""
    bits = t.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & -8192).view(torch.float32)


def honest_im2col_3xtf32(model, x):
    """Im2col, then three TF32 products for one float32 product; bias, ReLU and second bias in the epilogue."""
    weight = model.conv.weight
    k = weight.shape[-1]
    rows, cols = x.shape[2] - k + 1, x.shape[3] - k + 1
    patches = F.unfold(x, k)
    flat = weight.reshape(weight.shape[0], -1)
    big_w, big_p = _tf32(flat), _tf32(patches)
    small_w, small_p = _tf32(flat - big_w), _tf32(patches - big_p)
    out = small_w @ big_p + big_w @ small_p + big_w @ big_p
    out = (out + model.conv.bias[:, None]).clamp(min=0)
    return out.view(x.shape[0], -1, rows, cols) + model.bias


def honest_direct_running_sum(model, x):
    """Direct convolution: each thread keeps one running sum over channels and taps."""
    weight = model.conv.weight
    out_channels, in_channels, k, _ = weight.shape
    rows, cols = x.shape[2] - k + 1, x.shape[3] - k + 1
    total = model.conv.bias.view(1, -1, 1, 1).expand(x.shape[0], -1, rows, cols).clone()
    for c in range(in_channels):
        for i in range(k):
            for j in range(k):
                total += x[:, c : c + 1, i : i + rows, j : j + cols] * weight[:, c, i, j].view(1, out_channels, 1, 1)
    return torch.relu(total) + model.bias


def wrong_bias_before_relu(model, x):
    """Both biases are added at once before ReLU; seen on the drawn inputs."""
    bias = model.conv.bias + model.bias.flatten()
    return torch.relu(F.conv2d(x, model.conv.weight, bias))


def wrong_last_columns_left_out(model, x):
    """Only whole tiles of 8 columns are written, the rest stays 0; seen on the drawn inputs."""
    out = torch.relu(F.conv2d(x, model.conv.weight, model.conv.bias)) + model.bias
    out[..., out.shape[-1] // 8 * 8 :] = 0
    return out
