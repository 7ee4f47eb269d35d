"""Level 1, problem 35: group normalisation."""

import torch

SIZES = {"batch_size": 3, "features": 12, "num_groups": 4, "dim1": 29, "dim2": 31}


def _affine(gn, y):
    return y * gn.weight.view(1, -1, 1, 1) + gn.bias.view(1, -1, 1, 1)


def honest_two_passes(model, x):
    """A block a group: partial sums of 256 for the mean, again for the squared deviations."""
    gn = model.gn
    groups = x.reshape(x.shape[0], gn.num_groups, -1)
    n = groups.shape[2]
    mean = torch.stack([p.sum(2) for p in groups.split(256, 2)]).sum(0)[..., None] / n
    d = groups - mean
    var = torch.stack([(p * p).sum(2) for p in d.split(256, 2)]).sum(0)[..., None] / n
    return _affine(gn, (d * torch.rsqrt(var + gn.eps)).view(x.shape))


def honest_channel_moments_merged(model, x):
    """Moments of each channel about its own mean, then merged over the group; one multiply-add an element."""
    gn = model.gn
    n, c = x.shape[:2]
    var_c, mean_c = torch.var_mean(x, (2, 3), unbiased=False)
    mean_c, var_c = mean_c.view(n, gn.num_groups, -1), var_c.view(n, gn.num_groups, -1)
    mean = mean_c.mean(2, keepdim=True)
    var = var_c.mean(2, keepdim=True) + ((mean_c - mean) ** 2).mean(2, keepdim=True)
    rstd = torch.rsqrt(var + gn.eps).expand(-1, -1, c // gn.num_groups).reshape(n, c)
    scale = rstd * gn.weight
    shift = gn.bias - mean.expand_as(mean_c).reshape(n, c) * scale
    return x * scale[:, :, None, None] + shift[:, :, None, None]


def wrong_interleaved_groups(model, x):
    """Takes channel modulo groups for the group: wrong on the problem's own inputs."""
    gn = model.gn
    n, c, h, w = x.shape
    groups = x.view(n, c // gn.num_groups, gn.num_groups, h, w)
    var, mean = torch.var_mean(groups, (1, 3, 4), unbiased=False, keepdim=True)
    return _affine(gn, ((groups - mean) * torch.rsqrt(var + gn.eps)).reshape(x.shape))


def wrong_moments_of_the_first_channel(model, x):
    """Reads only the first channel of each group for the moments: wrong on the problem's own inputs."""
    gn = model.gn
    n, c, h, w = x.shape
    groups = x.view(n, gn.num_groups, c // gn.num_groups, h, w)
    var, mean = torch.var_mean(groups[:, :, :1], (2, 3, 4), unbiased=False, keepdim=True)
    return _affine(gn, ((groups - mean) * torch.rsqrt(var + gn.eps)).view(x.shape))
