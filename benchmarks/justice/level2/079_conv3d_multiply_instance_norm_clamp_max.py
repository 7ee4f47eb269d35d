"""Level 2, problem 79: 3D convolution, multiplier, instance norm, clamp, multiplier, maximum over channels."""

import torch
import torch.nn.functional as F

SIZES = {
    "batch_size": 3,
    "out_channels": 5,
    "depth": 7,
    "height": 9,
    "width": 11,
    "multiplier_shape": (5, 1, 1, 1),
}


def _finish(model, normed):
    return (normed.clamp(model.clamp_min, model.clamp_max) * model.multiplier).amax(1)


def honest_multiplier_in_the_moments(model, x):
    """Moments of the bare product without bias, which cancels; the multiplier enters the variance squared."""
    out = F.conv3d(x, model.conv.weight)
    out = out - out.mean((2, 3, 4), keepdim=True)
    var = (out * out).mean((2, 3, 4), keepdim=True)
    factor = model.multiplier
    return _finish(model, out * (factor * torch.rsqrt(factor * factor * var + model.instance_norm.eps)))


def honest_folded_weights_depth_merge(model, x):
    """The multiplier is folded into the weight; moments a depth plane, merged; running maximum over channels."""
    factor = model.multiplier.flatten()
    out = F.conv3d(x, model.conv.weight * factor.view(-1, 1, 1, 1, 1), model.conv.bias * factor)
    size = out.shape[3] * out.shape[4]
    mean, squares, count = 0.0, 0.0, 0
    for plane in out.unbind(2):
        plane_mean = plane.sum((2, 3)) / size
        delta = plane_mean - mean
        squares = squares + ((plane - plane_mean[..., None, None]) ** 2).sum((2, 3))
        squares = squares + delta * delta * (count * size / (count + size))
        mean = mean + delta * (size / (count + size))
        count += size
    root = torch.sqrt(squares / count + model.instance_norm.eps)
    highest = torch.full_like(out[:, 0], float("-inf"))
    for c in range(out.shape[1]):
        value = (out[:, c] - mean[:, c, None, None, None]) / root[:, c, None, None, None]
        value = value.clamp(model.clamp_min, model.clamp_max) * factor[c]
        highest = torch.maximum(highest, value)
    return highest


def wrong_sign_of_multiplier_cancelled(model, x):
    """Treats the first multiplier as cancelled by the norm, but its sign is not; seen on the drawn inputs."""
    out = model.conv(x)
    var, mean = torch.var_mean(out, (2, 3, 4), correction=0, keepdim=True)
    eps = model.instance_norm.eps / (model.multiplier * model.multiplier)
    return _finish(model, (out - mean) * torch.rsqrt(var + eps))


def wrong_maximum_starts_at_zero(model, x):
    """The maximum over channels starts at 0; seen on the drawn inputs, where every channel is negative."""
    return _finish(model, model.instance_norm(model.conv(x) * model.multiplier)).clamp(min=0)
