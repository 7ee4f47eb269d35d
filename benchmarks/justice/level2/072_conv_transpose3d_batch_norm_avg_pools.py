"""Level 2, problem 72: transposed 3D convolution, batch norm, two average pools."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "out_channels": 7, "depth": 7, "height": 9, "width": 10, "bias_shape": (7, 1, 1, 1)}


def _batch_norm(norm, out, training):
    return F.batch_norm(out, norm.running_mean.clone(), norm.running_var.clone(), norm.weight, norm.bias, training)


def honest_normed_after_one_pool(model, x):
    """Norm and pools are linear: one pool by 4 of the product without bias, which cancels, then scale and shift."""
    conv, norm = model.conv_transpose, model.batch_norm
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    n, c, d, h, w = x.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = x
    out = F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), padding=k - 1 - padding)
    if norm.training:
        var, mean = torch.var_mean(out, (0, 2, 3, 4), correction=0)
    else:
        mean, var = norm.running_mean - conv.bias, norm.running_var
    scale = (norm.weight * torch.rsqrt(var + norm.eps)).view(1, -1, 1, 1, 1)
    return (F.avg_pool3d(out, 4) - mean.view(1, -1, 1, 1, 1)) * scale + norm.bias.view(1, -1, 1, 1, 1)


def honest_shifted_moments(model, x):
    """Moments of values minus the first one, which loses nothing to a large mean; pools as sums of corners."""
    norm = model.batch_norm
    out = model.conv_transpose(x)
    if norm.training:
        first = out[0, :, 0, 0, 0].view(1, -1, 1, 1, 1)
        shifted = out - first
        mean = shifted.mean((0, 2, 3, 4), keepdim=True)
        var = ((shifted - mean) ** 2).mean((0, 2, 3, 4), keepdim=True)
        out = shifted - mean
    else:
        var = norm.running_var.view(1, -1, 1, 1, 1)
        out = out - norm.running_mean.view(1, -1, 1, 1, 1)
    out = out / torch.sqrt(var + norm.eps) * norm.weight.view(1, -1, 1, 1, 1) + norm.bias.view(1, -1, 1, 1, 1)
    for _ in range(2):
        d, h, w = (s // 2 * 2 for s in out.shape[2:])
        out = out[:, :, :d, :h, :w]
        out = out[..., 0::2] + out[..., 1::2]
        out = out[..., 0::2, :] + out[..., 1::2, :]
        out = (out[:, :, 0::2] + out[:, :, 1::2]) * 0.125
    return out


def wrong_moments_after_pooling(model, x):
    """The batch's moments are those of the pooled values; seen on the drawn inputs."""
    return _batch_norm(model.batch_norm, F.avg_pool3d(model.conv_transpose(x), 4), model.batch_norm.training)


def wrong_moments_of_first_sample(model, x):
    """The moments come from the first sample instead of the batch; seen on the drawn inputs."""
    norm, out = model.batch_norm, model.conv_transpose(x)
    var, mean = torch.var_mean(out[:1], (0, 2, 3, 4), correction=0, keepdim=True)
    out = (out - mean) * torch.rsqrt(var + norm.eps)
    out = out * norm.weight.view(1, -1, 1, 1, 1) + norm.bias.view(1, -1, 1, 1, 1)
    return F.avg_pool3d(out, 4)
