"""Level 2, problem 65: convolution, average pool by 4, sigmoid, sum over channels and positions."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 7, "out_channels": 21, "height": 37, "width": 45}


def honest_pool_in_the_kernel(model, x):
    """Convolution and average pool are one convolution of stride 4 with a 6 by 6 kernel."""
    weight = model.conv.weight
    wide = torch.zeros(*weight.shape[:2], weight.shape[2] + 3, weight.shape[3] + 3)
    for i in range(4):
        for j in range(4):
            wide[:, :, i : i + weight.shape[2], j : j + weight.shape[3]] += weight
    out = torch.sigmoid(F.conv2d(x, wide * 0.0625, model.conv.bias, stride=4)).flatten(1)
    while out.shape[1] > 1:
        out = F.pad(out, (0, out.shape[1] % 2))
        half = out.shape[1] // 2
        out = out[:, :half] + out[:, half:]
    return out[:, 0]


def honest_channel_sums_kahan(model, x):
    """Pools by rows, then columns; sigmoid with a reciprocal; Kahan sum over positions, plain sum over channels."""
    out = F.conv2d(x, model.conv.weight, model.conv.bias)
    h, w = (s // 4 for s in out.shape[2:])
    out = out[:, :, : 4 * h, : 4 * w].unflatten(2, (h, 4)).sum(3).unflatten(3, (w, 4)).sum(4) * 0.0625
    out = torch.reciprocal(1.0 + torch.exp(-out)).flatten(2)
    total, lost = torch.zeros_like(out[..., 0]), torch.zeros_like(out[..., 0])
    for i in range(out.shape[-1]):
        value = out[..., i] - lost
        grown = total + value
        lost = (grown - total) - value
        total = grown
    result = torch.zeros(x.shape[0])
    for c in range(total.shape[1]):
        result = result + total[:, c]
    return result


def wrong_sigmoid_before_pool(model, x):
    """Averages sigmoids instead of taking the sigmoid of averages; seen on inputs of 1e3, less on the drawn ones."""
    return F.avg_pool2d(torch.sigmoid(model.conv(x)), 4).sum((1, 2, 3))


def wrong_last_block_overwrites(model, x):
    """Every block of 1024 elements stores its sum instead of adding it, so the last remains; drawn inputs."""
    out = torch.sigmoid(F.avg_pool2d(model.conv(x), 4)).flatten(1)
    return out.split(1024, 1)[-1].sum(1)
