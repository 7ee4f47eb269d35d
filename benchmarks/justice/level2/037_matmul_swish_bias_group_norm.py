"""Level 2, problem 37: linear layer, swish, bias, group norm."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 41, "in_features": 307, "out_features": 348, "num_groups": 12, "bias_shape": (348,)}


def honest_swish_through_tanh(model, x):
    """Swish as half x times one plus tanh of half x; two-pass moments; the norm by a reciprocal root."""
    half = 0.5 * F.linear(x, model.matmul.weight, model.matmul.bias)
    out = half + half * torch.tanh(half) + model.bias
    norm = model.group_norm
    groups = out.view(x.shape[0], norm.num_groups, -1)
    groups = groups - groups.mean(-1, keepdim=True)
    out = (groups * torch.rsqrt((groups * groups).mean(-1, keepdim=True) + norm.eps)).flatten(1)
    return out * norm.weight + norm.bias


def honest_warp_shuffles(model, x):
    """Inner blocks of 8; exp2 for the sigmoid; group sums by shuffles over 32 lanes with a tail of zeros."""
    out = model.matmul.bias.expand(x.shape[0], -1)
    for k in range(0, x.shape[1], 8):
        out = out + x[:, k : k + 8] @ model.matmul.weight[:, k : k + 8].T
    out = out * (1.0 / (1.0 + torch.exp2(out * -1.4426950408889634))) + model.bias
    norm = model.group_norm
    groups = out.view(x.shape[0], norm.num_groups, -1)
    size = groups.shape[-1]

    def tree(values):
        values = F.pad(values, (0, 32 - size))
        for half in (16, 8, 4, 2, 1):
            values = values[..., :half] + values[..., half : 2 * half]
        return values

    groups = groups - tree(groups) / size
    out = groups / torch.sqrt(tree(groups * groups) / size + norm.eps)
    return out.flatten(1) * norm.weight + norm.bias


def wrong_bias_after_norm(model, x):
    """Adds the bias to the normed values; seen on the drawn inputs."""
    return model.group_norm(F.silu(model.matmul(x))) + model.bias


def wrong_padding_lanes_counted(model, x):
    """Divides by the 32 lanes instead of a group's 29 values; seen on the drawn inputs."""
    norm = model.group_norm
    groups = (F.silu(model.matmul(x)) + model.bias).view(x.shape[0], norm.num_groups, -1)
    groups = groups - groups.sum(-1, keepdim=True) / 32
    out = groups * torch.rsqrt((groups * groups).sum(-1, keepdim=True) / 32 + norm.eps)
    return out.flatten(1) * norm.weight + norm.bias
