"""Level 2, problem 58: transposed 3D convolution, log-sum-exp, x * sigmoid(x + 3) / 6, subtraction, clamp."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "out_channels": 13, "depth": 5, "height": 9, "width": 7}


def _finish(model, value):
    return (value * torch.sigmoid(value + 3) / 6 - model.bias).clamp(-1, 1)


def honest_gather_online(model, x):
    """Gathering form; online log-sum-exp; division by 6 times one plus an exponential."""
    conv = model.conv_transpose
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    n, c, d, h, w = x.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = x
    out = F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), conv.bias, padding=k - 1 - padding)
    top = torch.full_like(out[:, :1], float("-inf"))
    total = torch.zeros_like(top)
    for channel in out.split(1, 1):
        higher = torch.maximum(top, channel)
        total = total * torch.exp(top - higher) + torch.exp(channel - higher)
        top = higher
    value = top + torch.log(total)
    return (value / (6.0 + 6.0 * torch.exp(-3.0 - value)) - model.bias).clamp(-1.0, 1.0)


def honest_scatter_tanh(model, x):
    """Tap by tap into the spread output; two passes over channels; sigmoid through tanh."""
    conv = model.conv_transpose
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    reach = [(s - 1) * stride + 1 for s in x.shape[2:]]
    full = x.new_zeros(x.shape[0], conv.out_channels, *(s + k - 1 for s in reach))
    for a in range(k):
        for b in range(k):
            for c in range(k):
                part = torch.einsum("ncdhw,co->nodhw", x, conv.weight[:, :, a, b, c])
                window = full[:, :, a : a + reach[0], b : b + reach[1], c : c + reach[2]]
                window[:, :, ::stride, ::stride, ::stride] += part
    keep = [slice(padding, s - padding) for s in full.shape[2:]]
    out = full[:, :, keep[0], keep[1], keep[2]] + conv.bias.view(1, -1, 1, 1, 1)
    top = out.amax(1, keepdim=True)
    value = top + torch.log(torch.exp(out - top).sum(1, keepdim=True))
    gate = 0.5 + 0.5 * torch.tanh(0.5 * value + 1.5)
    return (value * gate * (1.0 / 6.0) - model.bias).clamp(-1.0, 1.0)


def wrong_usual_hardswish(model, x):
    """Takes the formula for the usual hardswish, x * clamp(x + 3, 0, 6) / 6; seen on the drawn inputs."""
    value = torch.logsumexp(model.conv_transpose(x), 1, keepdim=True)
    return (F.hardswish(value) - model.bias).clamp(-1, 1)


def wrong_last_depth_tap_skipped(model, x):
    """The loop over depth taps ends one early; seen on the drawn inputs."""
    conv = model.conv_transpose
    weight = conv.weight.clone()
    weight[:, :, -1] = 0
    out = F.conv_transpose3d(x, weight, conv.bias, conv.stride, conv.padding)
    return _finish(model, torch.logsumexp(out, 1, keepdim=True))
