"""Level 1, problem 81: transposed 2D convolution with stride, padding and dilation."""

import torch

SIZES = {"batch_size": 1, "in_channels": 16, "out_channels": 11, "height_in": 9, "width_in": 11}


def _scatter(conv, x, channels):
    k, s, p, d = conv.kernel_size[0], conv.stride[0], conv.padding[0], conv.dilation[0]
    h, w = x.shape[2:]
    out = torch.zeros(x.shape[0], conv.out_channels, (h - 1) * s + d * (k - 1) + 1, (w - 1) * s + d * (k - 1) + 1)
    for c in channels:
        for i in range(k):
            for j in range(k):
                product = torch.einsum("nchw,co->nohw", x[:, c], conv.weight[c, :, i, j])
                out[:, :, i * d : i * d + (h - 1) * s + 1 : s, j * d : j * d + (w - 1) * s + 1 : s] += product
    return out[:, :, p : out.shape[2] - p, p : out.shape[3] - p].contiguous()


def honest_scatter(model, x):
    """Adds the products of each tap and block of eight channels to a zeroed output."""
    return _scatter(model.conv_transpose2d, x, [slice(c, c + 8) for c in range(0, x.shape[1], 8)])


def honest_gather(model, x):
    """Each output looks up the inputs whose taps land on it and adds their products, tap by tap."""
    conv = model.conv_transpose2d
    k, s, p, d = conv.kernel_size[0], conv.stride[0], conv.padding[0], conv.dilation[0]
    h, w = x.shape[2:]
    out_h, out_w = (h - 1) * s - 2 * p + d * (k - 1) + 1, (w - 1) * s - 2 * p + d * (k - 1) + 1
    acc = torch.zeros(x.shape[0], conv.out_channels, out_h, out_w)
    for i in range(k):
        for j in range(k):
            row, column = torch.arange(out_h) + p - i * d, torch.arange(out_w) + p - j * d
            hit_row = (row % s == 0) & (row >= 0) & (row < h * s)
            hit_column = (column % s == 0) & (column >= 0) & (column < w * s)
            at_row, at_column = (row // s).clamp(0, h - 1), (column // s).clamp(0, w - 1)
            found = x[:, :, at_row][:, :, :, at_column] * (hit_row[:, None] & hit_column)
            acc = acc + torch.einsum("nchw,co->nohw", found, conv.weight[:, :, i, j])
    return acc


def wrong_last_channel_block_overwrites(model, x):
    """Blocks of eight channels store in place of adding, so the last one wins: wrong on own inputs."""
    return _scatter(model.conv_transpose2d, x, [slice(8, 16)])


def wrong_gaps_unwritten(model, x):
    """Writes only where a tap lands; elsewhere old memory (here an input value) shows: wrong on own inputs."""
    conv = model.conv_transpose2d
    out = _scatter(conv, x, [slice(None)])
    hit = _scatter(conv, torch.ones_like(x), [slice(None)]) != 0
    old = x.reshape(-1)[torch.arange(out.numel()) % x.numel()].view(out.shape)
    return torch.where(hit, out, old)
