"""Level 2, problem 10: transposed convolution, max pool, hardtanh, mean, tanh."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "out_channels": 21, "height": 22, "width": 26}


def _plain_convolution(conv, x):
    """With stride 1 the transposed convolution is a convolution with the kernel turned."""
    return F.conv2d(
        x, conv.weight.flip(2, 3).transpose(0, 1), conv.bias, padding=conv.kernel_size[0] - 1 - conv.padding[0]
    )


def honest_clamped_before_pool(model, x):
    """Clamping commutes with the maximum; the mean by rows, then over rows; tanh from one exponential."""
    out = _plain_convolution(model.conv_transpose, x).clamp(model.hardtanh.min_val, model.hardtanh.max_val)
    out = F.max_pool2d(out, 2)
    mean = (out.sum(3) * (1.0 / out.shape[3])).sum(2) * (1.0 / out.shape[2])
    mean = mean[:, :, None, None]
    return 1.0 - 2.0 / (torch.exp(2.0 * mean) + 1.0)


def honest_channels_last_kahan(model, x):
    """Channels-last product, maximum of four pixels, Kahan sum over the plane."""
    conv = model.conv_transpose
    k, pad = conv.kernel_size[0], conv.kernel_size[0] - 1 - conv.padding[0]
    h, w = x.shape[2] + 2 * pad - k + 1, x.shape[3] + 2 * pad - k + 1
    last = F.pad(x, (pad,) * 4).permute(0, 2, 3, 1).contiguous()
    turned = conv.weight.flip(2, 3)
    patches = torch.cat([last[:, i : i + h, j : j + w] for i in range(k) for j in range(k)], -1)
    out = patches @ turned.permute(2, 3, 0, 1).reshape(-1, conv.out_channels) + conv.bias
    out = out[:, : h // 2 * 2, : w // 2 * 2]
    out = torch.maximum(
        torch.maximum(out[:, 0::2, 0::2], out[:, 0::2, 1::2]), torch.maximum(out[:, 1::2, 0::2], out[:, 1::2, 1::2])
    )
    out = out.clamp(model.hardtanh.min_val, model.hardtanh.max_val).flatten(1, 2)
    total = torch.zeros_like(out[:, 0])
    lost = torch.zeros_like(total)
    for i in range(out.shape[1]):
        value = out[:, i] - lost
        grown = total + value
        lost = (grown - total) - value
        total = grown
    return torch.tanh(total / out.shape[1])[:, :, None, None]


def wrong_hardtanh_left_out(model, x):
    """Few drawn values reach the limits, so the clamp is dropped; seen a little there, plainly on inputs of 1e3."""
    out = F.max_pool2d(model.conv_transpose(x), 2)
    return torch.tanh(out.mean((2, 3), keepdim=True))


def wrong_partial_mean(model, x):
    """One block sums the first 128 pixels and divides by 128, its second round is missing; drawn inputs."""
    out = F.max_pool2d(model.conv_transpose(x), 2).clamp(model.hardtanh.min_val, model.hardtanh.max_val)
    return torch.tanh(out.flatten(2)[..., :128].mean(-1))[:, :, None, None]
