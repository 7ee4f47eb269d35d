"""Level 2, problem 17: convolution, instance norm, division."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "out_channels": 15, "height": 13, "width": 11}


def honest_bias_cancelled(model, x):
    """The convolution's bias cancels in the norm; two passes a plane, the division folded into the factor."""
    out = F.conv2d(x, model.conv.weight)
    out = out - out.mean((2, 3), keepdim=True)
    var = (out * out).mean((2, 3), keepdim=True)
    return out * (torch.rsqrt(var + model.instance_norm.eps) * (1.0 / model.divide_by))


def honest_merged_lanes(model, x):
    """Im2col product; 32 lanes run Welford over their share of a plane, then merge pairwise."""
    weight = model.conv.weight
    k = weight.shape[-1]
    out = weight.flatten(1) @ F.unfold(x, k) + model.conv.bias[:, None]
    n, c, size = out.shape
    means, squares, counts = [], [], []
    for lane in range(32):
        share = out[..., lane::32]
        mean, square = torch.zeros(n, c), torch.zeros(n, c)
        for i in range(share.shape[-1]):
            delta = share[..., i] - mean
            mean = mean + delta / (i + 1)
            square = square + delta * (share[..., i] - mean)
        means.append(mean)
        squares.append(square)
        counts.append(share.shape[-1])
    for half in (16, 8, 4, 2, 1):
        for i in range(half):
            both = counts[i] + counts[i + half]
            delta = means[i + half] - means[i]
            means[i] = means[i] + delta * (counts[i + half] / both)
            squares[i] = squares[i] + squares[i + half] + delta * delta * (counts[i] * counts[i + half] / both)
            counts[i] = both
    root = torch.sqrt(squares[0] / size + model.instance_norm.eps)
    out = (out - means[0][..., None]) / root[..., None] / model.divide_by
    return out.view(n, c, x.shape[2] - k + 1, x.shape[3] - k + 1)


def wrong_eps_outside_the_root(model, x):
    """Divides by the root of the variance plus eps; a little off on the drawn inputs, plainly on tiny ones."""
    out = model.conv(x)
    out = out - out.mean((2, 3), keepdim=True)
    return out / (torch.sqrt((out * out).mean((2, 3), keepdim=True)) + model.instance_norm.eps) / model.divide_by


def wrong_unbiased_variance(model, x):
    """Divides the squares by one less than the pixels (99); seen on the drawn inputs."""
    out = model.conv(x)
    var, mean = torch.var_mean(out, (2, 3), correction=1, keepdim=True)
    return (out - mean) * torch.rsqrt(var + model.instance_norm.eps) / model.divide_by
