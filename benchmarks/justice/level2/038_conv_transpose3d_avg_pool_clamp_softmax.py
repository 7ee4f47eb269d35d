"""Level 2, problem 38: average pool, transposed 3D convolution, clamp, softmax over positions, scale."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "in_channels": 13, "out_channels": 9, "depth": 7, "height": 10, "width": 14}


def _logits(model, x):
    return model.conv_transpose(model.avg_pool(x)).clamp(model.clamp_min, model.clamp_max)


def honest_limit_as_maximum(model, x):
    """The upper limit serves as the softmax's maximum; pooled by a product over sums along the axes."""
    d, h, w = (s // 2 * 2 for s in x.shape[2:])
    pooled = x[:, :, :d, :h, :w]
    pooled = pooled[..., 0::2] + pooled[..., 1::2]
    pooled = pooled[..., 0::2, :] + pooled[..., 1::2, :]
    pooled = (pooled[:, :, 0::2] + pooled[:, :, 1::2]) * 0.125
    out = model.conv_transpose(pooled).clamp(model.clamp_min, model.clamp_max)
    out = torch.exp(out - model.clamp_max)
    return out * ((1.0 / out.sum((2, 3, 4), keepdim=True)) * model.scale)


def honest_gather_online(model, x):
    """Gathering form; 64 lanes each with running maximum and sum, then merged."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    pooled = F.avg_pool3d(x, 2)
    n, c, d, h, w = pooled.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = pooled
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + extra) * 3)
    out = F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), conv.bias)
    out = out.clamp(model.clamp_min, model.clamp_max)
    flat = out.flatten(2)
    flat = F.pad(flat, (0, -flat.shape[-1] % 64), value=float("-inf")).unflatten(-1, (-1, 64))
    top, total = flat[:, :, 0], torch.ones_like(flat[:, :, 0])
    for i in range(1, flat.shape[2]):
        higher = torch.maximum(top, flat[:, :, i])
        total = total * torch.exp(top - higher) + torch.exp(flat[:, :, i] - higher)
        top = higher
    highest = top.amax(-1, keepdim=True)
    total = (total * torch.exp(top - highest)).sum(-1)[..., None, None, None]
    return torch.exp(out - highest[..., None, None]) / total * model.scale


def wrong_softmax_over_channels(model, x):
    """Takes the softmax over channels instead of positions; seen on the drawn inputs."""
    return torch.softmax(_logits(model, x), 1) * model.scale


def wrong_scale_left_out(model, x):
    """Leaves out the scale, which is 1 as constructed; seen once it is another number."""
    out = _logits(model, x)
    return torch.softmax(out.flatten(2), 2).view_as(out)
