"""Level 3, problem 46: NetVLAD with ghost clusters."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 7, "num_features": 19, "num_clusters": 9, "feature_size": 53, "ghost_clusters": 4}


def _logits(model, x):
    norm = model.batch_norm
    out = x.reshape(-1, model.feature_size) @ model.clusters
    if norm.training:
        var, mean = torch.var_mean(out, 0, correction=0)
    else:
        mean, var = norm.running_mean, norm.running_var
    return (out - mean) * (norm.weight * torch.rsqrt(var + norm.eps)) + norm.bias


def _describe(model, x, weights, axis=1):
    weights = weights.view(x.shape[0], x.shape[1], -1)
    vlad = x.transpose(1, 2) @ weights - weights.sum(1, keepdim=True) * model.clusters2
    return F.normalize(F.normalize(vlad, dim=axis).reshape(x.shape[0], -1))


def honest_products_by_sample(model, x):
    """Online softmax over clusters, products sample by sample, norms by reciprocal roots with the same floor."""
    logits = _logits(model, x)
    top = torch.full_like(logits[:, :1], float("-inf"))
    total = torch.zeros_like(top)
    for column in logits.split(1, 1):
        higher = torch.maximum(top, column)
        total = total * torch.exp(top - higher) + torch.exp(column - higher)
        top = higher
    weights = torch.exp(logits[:, : model.cluster_size] - top) * (1.0 / total)
    rows = []
    for sample, weight in zip(x, weights.view(x.shape[0], -1, model.cluster_size), strict=True):
        vlad = sample.T @ weight - weight.sum(0) * model.clusters2[0]
        vlad = vlad * (1.0 / torch.sqrt((vlad * vlad).sum(0)).clamp(min=1e-12))
        rows.append(vlad.flatten() * (1.0 / torch.sqrt((vlad * vlad).sum()).clamp(min=1e-12)))
    return torch.stack(rows)


def honest_residuals_accumulated(model, x):
    """Adds weighted residuals x - c feature by feature, as the definition has it; exp2 for the softmax."""
    logits = _logits(model, x)
    weights = torch.exp2((logits - logits.amax(1, keepdim=True)) * 1.4426950408889634)
    weights = (weights / weights.sum(1, keepdim=True))[:, : model.cluster_size].view(x.shape[0], x.shape[1], -1)
    vlad = torch.zeros(x.shape[0], model.feature_size, model.cluster_size)
    for i in range(x.shape[1]):
        vlad = vlad + weights[:, i, None, :] * (x[:, i, :, None] - model.clusters2)
    vlad = vlad / vlad.norm(dim=1, keepdim=True).clamp(min=1e-12)
    flat = vlad.reshape(x.shape[0], -1)
    return flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-12)


def wrong_ghosts_cut_before_softmax(model, x):
    """Leaves the ghost clusters out of the softmax's sum; seen on the drawn inputs."""
    return _describe(model, x, torch.softmax(_logits(model, x)[:, : model.cluster_size], 1))


def wrong_normed_over_clusters(model, x):
    """The first norm runs over the clusters instead of the features; seen on the drawn inputs."""
    return _describe(model, x, torch.softmax(_logits(model, x), 1)[:, : model.cluster_size], axis=2)
