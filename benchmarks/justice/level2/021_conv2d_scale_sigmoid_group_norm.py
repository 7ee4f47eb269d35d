"""Level 2, problem 21: convolution, bias, scale, sigmoid, group norm."""

import torch
import torch.nn.functional as F

SIZES = {
    "batch_size": 3,
    "out_channels": 27,
    "height": 21,
    "width": 21,
    "num_groups": 3,
    "bias_shape": (27, 1, 1),
    "scale_shape": (27, 1, 1),
}


def _group_norm(out, groups, eps, sample=1):
    parts = out.reshape(out.shape[0], groups, -1)
    seen = parts[..., ::sample]
    mean = seen.mean(-1, keepdim=True)
    var = ((seen - mean) ** 2).mean(-1, keepdim=True)
    return ((parts - mean) * torch.rsqrt(var + eps)).view_as(out)


def _affine(norm, out):
    return out * norm.weight[:, None, None] + norm.bias[:, None, None]


def honest_folded_scale_tanh(model, x):
    """Bias and scale are folded into the convolution; sigmoid as half a tanh plus a half."""
    scale = model.scale.flatten()
    weight = model.conv.weight * scale[:, None, None, None]
    bias = (model.conv.bias + model.bias.flatten()) * scale
    out = 0.5 * torch.tanh(0.5 * F.conv2d(x, weight, bias)) + 0.5
    return _affine(model.group_norm, _group_norm(out, model.group_norm.num_groups, model.group_norm.eps))


def honest_tap_order_online_moments(model, x):
    """Tap by tap; sigmoid with exp2; group moments merged channel by channel (Chan)."""
    weight, norm = model.conv.weight, model.group_norm
    k = weight.shape[-1]
    rows, cols = x.shape[2] - k + 1, x.shape[3] - k + 1
    out = torch.zeros(x.shape[0], weight.shape[0], rows, cols)
    for i in range(k):
        for j in range(k):
            out += torch.einsum("nchw,oc->nohw", x[:, :, i : i + rows, j : j + cols], weight[:, :, i, j])
    out = (out + model.conv.bias[:, None, None] + model.bias) * model.scale
    out = 1.0 / (1.0 + torch.exp2(out * -1.4426950408889634))
    parts = out.view(x.shape[0], norm.num_groups, -1, rows * cols)
    mean, squares, count, size = 0.0, 0.0, 0, rows * cols
    for channel in parts.unbind(2):
        channel_mean = channel.sum(-1) / size
        delta = channel_mean - mean
        squares = squares + ((channel - channel_mean[..., None]) ** 2).sum(-1)
        squares = squares + delta * delta * (count * size / (count + size))
        mean = mean + delta * (size / (count + size))
        count += size
    scale = torch.rsqrt(squares / count + norm.eps)
    return _affine(norm, ((parts - mean[..., None, None]) * scale[..., None, None]).view_as(out))


def wrong_group_size_for_count(model, x):
    """Takes the number of groups for the channels a group has; seen on the drawn inputs."""
    out = torch.sigmoid((model.conv(x) + model.bias) * model.scale)
    groups = out.shape[1] // model.group_norm.num_groups
    return _affine(model.group_norm, _group_norm(out, groups, model.group_norm.eps))


def wrong_sampled_statistics(model, x):
    """Mean and variance come from every fourth element; seen on the drawn inputs."""
    out = torch.sigmoid((model.conv(x) + model.bias) * model.scale)
    return _affine(model.group_norm, _group_norm(out, model.group_norm.num_groups, model.group_norm.eps, 4))
