"""Level 2, problem 30: linear layer, group norm, hardtanh."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 31, "in_features": 503, "out_features": 368}


def honest_running_sums(model, x):
    """One running sum along the inner axis; group moments in plain order, two passes; clamp in the epilogue."""
    out = torch.zeros(x.shape[0], model.gemm.out_features)
    for k in range(x.shape[1]):
        out = out + x[:, k : k + 1] * model.gemm.weight[:, k]
    out = out + model.gemm.bias
    norm = model.group_norm
    groups = out.view(x.shape[0], norm.num_groups, -1)
    mean = torch.zeros_like(groups[..., 0])
    for i in range(groups.shape[-1]):
        mean = mean + groups[..., i]
    mean = (mean * (1.0 / groups.shape[-1]))[..., None]
    scale = torch.rsqrt(((groups - mean) ** 2).sum(-1, keepdim=True) * (1.0 / groups.shape[-1]) + norm.eps)
    out = ((groups - mean) * scale).flatten(1)
    return torch.addcmul(norm.bias, out, norm.weight).clamp(model.hardtanh.min_val, model.hardtanh.max_val)


def honest_split_k(model, x):
    """Four splits of the inner axis, added at the end; the norm as scale and shift of centred values."""
    parts = zip(x.chunk(4, 1), model.gemm.weight.chunk(4, 1), strict=True)
    a, b, c, d = (left @ right.T for left, right in parts)
    out = ((a + b) + (c + d)) + model.gemm.bias
    norm = model.group_norm
    groups = out.view(x.shape[0], norm.num_groups, -1)
    centred = groups - groups[..., :1]
    var, mean = torch.var_mean(centred, -1, correction=0, keepdim=True)
    scale = (1.0 / torch.sqrt(var + norm.eps)) * norm.weight.view(norm.num_groups, -1)
    out = (centred - mean) * scale + norm.bias.view(norm.num_groups, -1)
    return out.flatten(1).clamp(model.hardtanh.min_val, model.hardtanh.max_val)


def wrong_eps_of_another_norm(model, x):
    """Uses 1e-3 for eps instead of 1e-5; seen on the drawn inputs."""
    norm = model.group_norm
    return model.hardtanh(F.group_norm(model.gemm(x), norm.num_groups, norm.weight, norm.bias, 1e-3))


def wrong_clamped_before_affine(model, x):
    """Clamps before the norm's weight and bias are applied; seen once these are not 1 and 0."""
    norm = model.group_norm
    return model.hardtanh(F.group_norm(model.gemm(x), norm.num_groups, eps=norm.eps)) * norm.weight + norm.bias
