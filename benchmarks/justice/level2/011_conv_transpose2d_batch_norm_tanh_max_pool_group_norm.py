"""Level 2, problem 11: transposed convolution, batch norm, tanh, max pool, group norm."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 5, "in_channels": 23, "out_channels": 21, "num_groups": 7, "height": 11, "width": 9}


def _convolved(conv, x):
    turned = conv.weight.flip(2, 3).transpose(0, 1)
    return F.conv2d(x, turned, conv.bias, padding=conv.kernel_size[0] - 1 - conv.padding[0])


def _batch_statistics(norm, out):
    if not norm.training:
        return norm.running_mean, norm.running_var
    mean = out.mean((0, 2, 3))
    return mean, ((out - mean[:, None, None]) ** 2).mean((0, 2, 3))


def _group_norm(norm, out):
    groups = out.reshape(out.shape[0], norm.num_groups, -1)
    mean = groups.mean(-1, keepdim=True)
    scale = torch.rsqrt(((groups - mean) ** 2).mean(-1, keepdim=True) + norm.eps)
    normed = ((groups - mean) * scale).view_as(out)
    return normed * norm.weight[:, None, None] + norm.bias[:, None, None]


def honest_tanh_after_pool(model, x):
    """Batch norm as one multiply-add; tanh rises, so it follows the pool on a quarter of the pixels."""
    norm = model.batch_norm
    out = _convolved(model.conv_transpose, x)
    mean, var = _batch_statistics(norm, out)
    scale = norm.weight * torch.rsqrt(var + norm.eps)
    shift = norm.bias - mean * scale
    out = out * scale[:, None, None] + shift[:, None, None]
    return _group_norm(model.group_norm, torch.tanh(F.max_pool2d(out, 2)))


def honest_merged_moments(model, x):
    """Each sample's moments are merged pairwise (Chan) for the batch; the group norm's sums are Kahan sums."""
    norm = model.batch_norm
    out = _convolved(model.conv_transpose, x)
    if norm.training:
        count, mean, squares = 0, 0.0, 0.0
        size = out[0, 0].numel()
        for sample in out.flatten(2):
            sample_mean = sample.mean(1)
            sample_squares = ((sample - sample_mean[:, None]) ** 2).sum(1)
            delta = sample_mean - mean
            mean = mean + delta * (size / (count + size))
            squares = squares + sample_squares + delta * delta * (count * size / (count + size))
            count += size
        var = squares / count
    else:
        mean, var = norm.running_mean, norm.running_var
    out = (out - mean[:, None, None]) / torch.sqrt(var + norm.eps)[:, None, None]
    out = F.max_pool2d(torch.tanh(out * norm.weight[:, None, None] + norm.bias[:, None, None]), 2)
    groups = out.reshape(out.shape[0], model.group_norm.num_groups, -1)
    total, lost = torch.zeros_like(groups[..., 0]), torch.zeros_like(groups[..., 0])
    for i in range(groups.shape[-1]):
        value = groups[..., i] - lost
        grown = total + value
        lost = (grown - total) - value
        total = grown
    groups = groups - (total / groups.shape[-1])[..., None]
    root = torch.sqrt((groups * groups).sum(-1, keepdim=True) / groups.shape[-1] + model.group_norm.eps)
    weight, bias = model.group_norm.weight[:, None, None], model.group_norm.bias[:, None, None]
    return (groups / root).view_as(out) * weight + bias


def wrong_pooled_before_norm(model, x):
    """The maximum is taken before the norm, right only where its weight is positive; seen with a negative one."""
    norm = model.batch_norm
    out = model.conv_transpose(x)
    mean, var = _batch_statistics(norm, out)
    scale = norm.weight * torch.rsqrt(var + norm.eps)
    out = (F.max_pool2d(out, 2) - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
    return _group_norm(model.group_norm, torch.tanh(out))


def wrong_running_statistics_in_training(model, x):
    """The running mean and variance are taken in training mode too; seen on the drawn inputs."""
    norm = model.batch_norm
    out = model.conv_transpose(x)
    out = F.batch_norm(out, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps)
    return _group_norm(model.group_norm, F.max_pool2d(torch.tanh(out), 2))
