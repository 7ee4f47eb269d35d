"""Level 2, problem 84: linear layer, batch norm, one scale, softmax over features."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 37, "in_features": 451, "out_features": 213}


def _moments(norm, out, correction=0):
    if not norm.training:
        return norm.running_mean, norm.running_var
    var, mean = torch.var_mean(out, 0, correction=correction)
    return mean, var


def honest_centred_inputs(model, x):
    """In training the mean over the batch is taken from the inputs, and the bias cancels; scale folded; exp2."""
    norm = model.bn
    if norm.training:
        out = (x - x.mean(0)) @ model.gemm.weight.T
        var = (out * out).mean(0)
    else:
        out = model.gemm(x) - norm.running_mean
        var = norm.running_var
    out = out * (torch.rsqrt(var + norm.eps) * norm.weight * model.scale) + norm.bias * model.scale
    out = torch.exp2((out - out.amax(1, keepdim=True)) * 1.4426950408889634)
    return out * (1.0 / out.sum(1, keepdim=True))


def honest_welford_online_softmax(model, x):
    """Welford down each column, online softmax over blocks of 32 features."""
    norm, out = model.bn, model.gemm(x)
    if norm.training:
        mean, squares = torch.zeros(out.shape[1]), torch.zeros(out.shape[1])
        for i, row in enumerate(out):
            delta = row - mean
            mean = mean + delta / (i + 1)
            squares = squares + delta * (row - mean)
        var = squares / out.shape[0]
    else:
        mean, var = norm.running_mean, norm.running_var
    out = ((out - mean) / torch.sqrt(var + norm.eps) * norm.weight + norm.bias) * model.scale
    top = torch.full((x.shape[0], 1), float("-inf"))
    total = torch.zeros_like(top)
    for block in out.split(32, 1):
        higher = torch.maximum(top, block.amax(1, keepdim=True))
        total = total * torch.exp(top - higher) + torch.exp(block - higher).sum(1, keepdim=True)
        top = higher
    return torch.exp(out - top) / total


def wrong_unbiased_batch_variance(model, x):
    """Normalizes by the unbiased variance of the 37 rows; seen on the drawn inputs."""
    norm, out = model.bn, model.gemm(x)
    mean, var = _moments(norm, out, 1)
    out = (out - mean) * torch.rsqrt(var + norm.eps) * norm.weight + norm.bias
    return torch.softmax(out * model.scale, 1)


def wrong_softmax_over_batch(model, x):
    """Takes the softmax down the columns; seen on the drawn inputs."""
    norm, out = model.bn, F.linear(x, model.gemm.weight, model.gemm.bias)
    mean, var = _moments(norm, out)
    out = (out - mean) * torch.rsqrt(var + norm.eps) * norm.weight + norm.bias
    return torch.softmax(out * model.scale, 0)
