"""Level 2, problem 67: convolution, GELU, mean over positions."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 4, "out_channels": 17, "height": 27, "width": 31}


def honest_block_partials(model, x):
    """Channels-last product; blocks of 128 pixels each sum their share, a second kernel adds the partial sums."""
    weight = model.conv.weight
    k = weight.shape[-1]
    h, w = x.shape[2] - k + 1, x.shape[3] - k + 1
    last = x.permute(0, 2, 3, 1)
    patches = torch.cat([last[:, i : i + h, j : j + w] for i in range(k) for j in range(k)], -1)
    out = patches @ weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0]) + model.conv.bias
    out = (out * 0.5 * (1.0 + torch.erf(out * 0.7071067811865476))).flatten(1, 2)
    partial = torch.stack([block.sum(1) for block in out.split(128, 1)])
    return partial.sum(0) * (1.0 / (h * w))


def honest_running_mean(model, x):
    """GELU through erfc, plain running sum over all 725 pixels, which may err by some 1e-6 of the mean."""
    out = F.conv2d(x, model.conv.weight, model.conv.bias).flatten(2)
    out = out * (0.5 * torch.erfc(out * -0.7071067811865476))
    total = torch.zeros_like(out[..., 0])
    for i in range(out.shape[-1]):
        total = total + out[..., i]
    return total / out.shape[-1]


def wrong_mean_before_gelu(model, x):
    """Applies GELU to the mean; seen on the drawn inputs."""
    return F.gelu(model.conv(x).mean((2, 3)))


def wrong_bfloat16_running_sum(model, x):
    """The running sum is kept in bfloat16 and stops growing; seen on the drawn inputs."""
    out = F.gelu(model.conv(x)).flatten(2)
    total = torch.zeros_like(out[..., 0]).bfloat16()
    for i in range(out.shape[-1]):
        total = (total.float() + out[..., i]).bfloat16()
    return total.float() / out.shape[-1]
