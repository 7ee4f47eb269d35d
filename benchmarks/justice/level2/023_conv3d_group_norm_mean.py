"""Level 2, problem 23: 3D convolution, group norm, mean of all but the batch.

As constructed (weight 1, bias 0) the exact result is 0 and the reference returns rounding noise of 1e-8, so deviations
are large beside the output's spread there, for every honest kernel.
"""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 5, "out_channels": 21, "D": 9, "H": 11, "W": 13, "num_groups": 7}


def honest_channel_means(model, x):
    """Only moments are needed: the mean of a norm is its weights times the channels' centred means."""
    norm = model.group_norm
    out = F.conv3d(x, model.conv.weight, model.conv.bias).flatten(2)
    groups = out.reshape(x.shape[0], norm.num_groups, -1)
    mean = groups.mean(-1, keepdim=True)
    scale = torch.rsqrt(((groups - mean) ** 2).mean(-1, keepdim=True) + norm.eps)
    channels = out.view(x.shape[0], norm.num_groups, -1, out.shape[-1])
    centred = (channels - mean[..., None]).mean(-1) * scale
    return (centred.flatten(1) * norm.weight).mean(1) + norm.bias.mean()


def honest_normed_then_summed(model, x):
    """Tap by tap, norm as one multiply-add, running sum over channels of the sums over positions."""
    weight, norm = model.conv.weight, model.group_norm
    k = weight.shape[-1]
    d, h, w = (s - k + 1 for s in x.shape[2:])
    out = model.conv.bias.view(1, -1, 1, 1, 1).expand(x.shape[0], -1, d, h, w).clone()
    for a in range(k):
        for b in range(k):
            for c in range(k):
                part = x[:, :, a : a + d, b : b + h, c : c + w]
                out += torch.einsum("ncdhw,oc->nodhw", part, weight[:, :, a, b, c])
    groups = out.view(x.shape[0], norm.num_groups, -1)
    var, mean = torch.var_mean(groups, -1, correction=0, keepdim=True)
    out = ((groups - mean) / torch.sqrt(var + norm.eps)).view(x.shape[0], weight.shape[0], -1)
    total = torch.zeros(x.shape[0])
    for c in range(weight.shape[0]):
        total = total + (out[:, c] * norm.weight[c] + norm.bias[c]).sum(1)
    return total / (out.shape[1] * out.shape[2])


def wrong_constant_zero(model, x):
    """Returns the 0 that weight 1 and bias 0 give on any input; seen once the norm has other numbers."""
    return torch.zeros(x.shape[0])


def wrong_weight_by_place_in_group(model, x):
    """Indexes weight and bias by the place within the group; seen once the norm has other numbers."""
    norm = model.group_norm
    out = F.group_norm(model.conv(x), norm.num_groups, eps=norm.eps).flatten(2)
    place = torch.arange(out.shape[1]) % (out.shape[1] // norm.num_groups)
    return (out * norm.weight[place][:, None] + norm.bias[place][:, None]).mean((1, 2))
