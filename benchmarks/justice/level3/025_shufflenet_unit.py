"""Level 3, problem 25: grouped 1x1, depthwise 3x3, channel shuffle, grouped 1x1, shortcut; batch norms between."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 4, "input_channels": 24, "out_channels": 60, "height": 13, "width": 11}


def _norm(norm, x):
    if norm.training:
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    else:
        mean, var = norm.running_mean, norm.running_var
    scale = norm.weight * torch.rsqrt(var + norm.eps)
    return (x - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]


def _shuffle(x, groups):
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


def _unit(model, x, shuffle):
    out = torch.relu(_norm(model.bn1, model.conv1(x)))
    out = shuffle(_norm(model.bn2, model.conv2(out)))
    return torch.relu(_norm(model.bn3, model.conv3(out))), _norm(model.shortcut[1], model.shortcut[0](x))


def honest_products_by_group(model, x):
    """Each group a product; depthwise tap by tap; the shuffle is an index when the last product reads."""
    groups = model.conv1.groups
    parts = [
        torch.einsum("nchw,oc->nohw", part, weight[:, :, 0, 0])
        for part, weight in zip(x.chunk(groups, 1), model.conv1.weight.chunk(groups), strict=True)
    ]
    out = torch.relu(_norm(model.bn1, torch.cat(parts, 1)))
    h, w = out.shape[2:]
    padded, total = F.pad(out, (1, 1, 1, 1)), torch.zeros_like(out)
    for i in range(3):
        for j in range(3):
            total = total + padded[:, :, i : i + h, j : j + w] * model.conv2.weight[:, 0, i, j][:, None, None]
    out = _norm(model.bn2, total)
    channels = out.shape[1]
    order = [(c % groups) * (channels // groups) + c // groups for c in range(channels)]
    parts = [
        torch.einsum("nchw,oc->nohw", out[:, index], weight[:, :, 0, 0])
        for index, weight in zip(torch.tensor(order).chunk(groups), model.conv3.weight.chunk(groups), strict=True)
    ]
    shortcut = torch.einsum("nchw,oc->nohw", x, model.shortcut[0].weight[:, :, 0, 0])
    return torch.relu(_norm(model.bn3, torch.cat(parts, 1))) + _norm(model.shortcut[1], shortcut)


def honest_dense_block_weights(model, x):
    """Grouped weights as dense ones with zeros, the shuffle folded into the columns of the last one."""
    groups = model.conv1.groups
    first = torch.block_diag(*model.conv1.weight[:, :, 0, 0].chunk(groups))
    third = torch.block_diag(*model.conv3.weight[:, :, 0, 0].chunk(groups))
    third = third.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1, 2)
    n, _, h, w = x.shape
    out = torch.relu(_norm(model.bn1, (first @ x.flatten(2)).view(n, -1, h, w)))
    out = _norm(model.bn2, F.conv2d(out, model.conv2.weight, padding=1, groups=out.shape[1]))
    out = torch.relu(_norm(model.bn3, (third @ out.flatten(2)).view(n, -1, h, w)))
    shortcut = (model.shortcut[0].weight[:, :, 0, 0] @ x.flatten(2)).view(n, -1, h, w)
    return out + _norm(model.shortcut[1], shortcut)


def wrong_shuffle_the_other_way(model, x):
    """Shuffles with groups and channels a group exchanged; seen on the drawn inputs."""
    out, shortcut = _unit(model, x, lambda t: _shuffle(t, t.shape[1] // model.conv1.groups))
    return out + shortcut


def wrong_relu_after_shortcut(model, x):
    """Applies the last ReLU once more to the sum; seen on the drawn inputs."""
    out, shortcut = _unit(model, x, lambda t: _shuffle(t, model.conv1.groups))
    return torch.relu(out + shortcut)
