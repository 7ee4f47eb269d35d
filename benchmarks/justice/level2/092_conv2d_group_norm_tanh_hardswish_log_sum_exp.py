"""Level 2, problem 92: convolution; group norm, tanh, hardswish; added to the convolution; log-sum-exp."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "out_channels": 33, "height": 13, "width": 19, "groups": 11}


def _normed(norm, out):
    groups = out.reshape(out.shape[0], norm.num_groups, -1)
    groups = groups - groups.mean(-1, keepdim=True)
    normed = (groups * torch.rsqrt((groups * groups).mean(-1, keepdim=True) + norm.eps)).view_as(out)
    return normed * norm.weight[:, None, None] + norm.bias[:, None, None]


def honest_hardswish_without_clamps(model, x):
    """Tanh lies within hardswish's middle piece, so it is t(t + 3)/6 without clamps; log-sum-exp in one pass."""
    out = F.conv2d(x, model.conv.weight, model.conv.bias)
    t = torch.tanh(_normed(model.group_norm, out))
    out = out + t * (t * (1.0 / 6.0) + 0.5)
    top = torch.full_like(out[:, :1], float("-inf"))
    total = torch.zeros_like(top)
    for channel in out.split(1, 1):
        higher = torch.maximum(top, channel)
        total = total * torch.exp(top - higher) + torch.exp(channel - higher)
        top = higher
    return top + torch.log(total)


def honest_tap_order_base_two(model, x):
    """Tap by tap; tanh as a quotient of exponentials with its sign put back; log-sum-exp with powers of two."""
    weight = model.conv.weight
    k = weight.shape[-1]
    rows, cols = x.shape[2] - k + 1, x.shape[3] - k + 1
    out = torch.zeros(x.shape[0], weight.shape[0], rows, cols)
    for i in range(k):
        for j in range(k):
            out += torch.einsum("nchw,oc->nohw", x[:, :, i : i + rows, j : j + cols], weight[:, :, i, j])
    out = out + model.conv.bias[:, None, None]
    normed = _normed(model.group_norm, out)
    small = torch.exp(normed.abs() * -2.0)
    t = torch.copysign((1.0 - small) / (1.0 + small), normed)
    out = (out + t * (t + 3.0).clamp(0.0, 6.0) / 6.0) * 1.4426950408889634
    top = out.amax(1, keepdim=True)
    return (top + torch.log2(torch.exp2(out - top).sum(1, keepdim=True))) * 0.6931471805599453


def wrong_residual_of_norm(model, x):
    """Adds the normed values instead of the convolution's; seen on the drawn inputs."""
    normed = _normed(model.group_norm, model.conv(x))
    return torch.logsumexp(normed + F.hardswish(torch.tanh(normed)), 1, keepdim=True)


def wrong_normed_by_channel(model, x):
    """Every channel has moments of its own instead of its group's; seen on the drawn inputs."""
    norm, out = model.group_norm, model.conv(x)
    normed = F.group_norm(out, out.shape[1], norm.weight, norm.bias, norm.eps)
    return torch.logsumexp(out + F.hardswish(torch.tanh(normed)), 1, keepdim=True)
