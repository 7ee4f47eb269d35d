"""Level 2, problem 46: convolution, subtraction, tanh, subtraction, average pool."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "in_channels": 33, "out_channels": 14, "height": 17, "width": 23}


def honest_winograd(model, x):
    """Winograd F(2x2, 3x3): each tile of two by two pixels is one pool window; second constant after the pool."""
    weight = model.conv.weight
    g = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]])
    b = torch.tensor([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
    a = torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]])
    tiles = x.unfold(2, 4, 2).unfold(3, 4, 2)
    points = torch.einsum("ncuvij,ocij->nouvij", b @ tiles @ b.T, g @ weight @ g.T)
    out = a @ points @ a.T + (model.conv.bias - model.subtract1_value)[:, None, None, None, None]
    return torch.tanh(out).sum((-1, -2)) * 0.25 - model.subtract2_value


def honest_im2col_fast_tanh(model, x):
    """Im2col product; tanh as a quotient of exponentials; four neighbours summed in order."""
    k = model.conv.kernel_size[0]
    rows, cols = x.shape[2] - k + 1, x.shape[3] - k + 1
    out = model.conv.weight.flatten(1) @ F.unfold(x, k) + model.conv.bias[:, None] - model.subtract1_value
    small = torch.exp2(out.abs() * -2.8853900817779268)
    out = torch.copysign((1.0 - small) / (1.0 + small), out) - model.subtract2_value
    out = out.view(x.shape[0], -1, rows, cols)[:, :, : rows // 2 * 2, : cols // 2 * 2]
    out = out[:, :, 0::2, 0::2] + out[:, :, 0::2, 1::2] + out[:, :, 1::2, 0::2] + out[:, :, 1::2, 1::2]
    return out / 4.0


def wrong_pooled_before_tanh(model, x):
    """Averages before tanh; seen on the drawn inputs."""
    out = F.avg_pool2d(model.conv(x) - model.subtract1_value, 2)
    return torch.tanh(out) - model.subtract2_value


def wrong_constants_merged(model, x):
    """Both constants are subtracted before tanh; seen on the drawn inputs."""
    out = model.conv(x) - (model.subtract1_value + model.subtract2_value)
    return F.avg_pool2d(torch.tanh(out), 2)
