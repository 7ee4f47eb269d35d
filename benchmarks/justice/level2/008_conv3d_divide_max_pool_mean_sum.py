"""Level 2, problem 8: 3D convolution, division, max pool, global mean, bias, sum over channels."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 5, "out_channels": 13, "depth": 11, "height": 15, "width": 13, "bias_shape": (13, 1, 1, 1)}


def honest_one_reduction_a_sample(model, x):
    """Divides by a product, after the pool; one tree over channels and positions together, biases summed once."""
    out = F.max_pool3d(F.conv3d(x, model.conv.weight, model.conv.bias), 2)
    positions = out[0, 0].numel()
    flat = out.flatten(1)
    while flat.shape[1] > 1:
        flat = F.pad(flat, (0, flat.shape[1] % 2))
        half = flat.shape[1] // 2
        flat = flat[:, :half] + flat[:, half:]
    out = flat * (1.0 / (model.divisor * positions)) + model.bias.sum()
    return out.view(-1, 1, 1, 1)


def honest_folded_weights_running_sums(model, x):
    """Weights and bias are divided beforehand; plain running sums over positions, then over channels."""
    weight, bias = model.conv.weight / model.divisor, model.conv.bias / model.divisor
    out = F.max_pool3d(F.conv3d(x, weight, bias), 2).flatten(2)
    total = torch.zeros_like(out[..., 0])
    for i in range(out.shape[-1]):
        total = total + out[..., i]
    total = total / out.shape[-1] + model.bias.flatten()
    result = torch.zeros_like(total[:, 0])
    for c in range(total.shape[1]):
        result = result + total[:, c]
    return result.view(-1, 1, 1, 1)


def wrong_maximum_starts_at_zero(model, x):
    """The running maximum starts at 0, so negative windows become 0; seen on the drawn inputs."""
    out = F.max_pool3d(F.conv3d(x, model.conv.weight, model.conv.bias) / model.divisor, 2).clamp(min=0)
    return (out.mean((2, 3, 4), keepdim=True) + model.bias).sum(1)


def wrong_ragged_windows_pooled(model, x):
    """Windows over the edge are pooled too (ceil mode), where a size is odd; seen on the drawn inputs."""
    out = F.conv3d(x, model.conv.weight, model.conv.bias) / model.divisor
    out = F.max_pool3d(out, 2, ceil_mode=True)
    return (out.mean((2, 3, 4), keepdim=True) + model.bias).sum(1)
