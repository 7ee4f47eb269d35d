"""Level 2, problem 14: product without bias, division by 2, sum over features, scaling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 33, "input_size": 517, "hidden_size": 301}


def honest_summed_weights(model, x):
    """The rows of the weight are summed first, so a vector product is left; one factor at the end."""
    column = torch.zeros_like(model.weight[0])
    for row in model.weight:
        column = column + row
    return (x @ column * (0.5 * model.scaling_factor))[:, None]


def honest_blocked_then_tree(model, x):
    """The product in blocks of 32 along the inner axis, halved, then a warp tree over the features."""
    out = torch.zeros(x.shape[0], model.weight.shape[0])
    for start in range(0, x.shape[1], 32):
        out = out + x[:, start : start + 32] @ model.weight[:, start : start + 32].T
    out = out * 0.5
    out = F.pad(out, (0, -out.shape[1] % 32)).view(x.shape[0], -1, 32)
    for offset in (16, 8, 4, 2, 1):
        out = out[..., :offset] + out[..., offset : 2 * offset]
    return out.squeeze(-1).sum(1, keepdim=True) * model.scaling_factor


def wrong_bfloat16_operands(model, x):
    """Both operands are rounded to bfloat16 before a float32 product; seen on the drawn inputs."""
    out = x.bfloat16().float() @ model.weight.bfloat16().float().T
    return (out / 2).sum(1, keepdim=True) * model.scaling_factor


def wrong_every_second_feature(model, x):
    """Computes every second feature and doubles the sum; seen on the drawn inputs."""
    out = x @ model.weight[::2].T
    return out.sum(1, keepdim=True) * model.scaling_factor
