"""Level 2, problem 98: linear layer, average pool over 16 features, GELU, scaling, maximum over a row."""

import torch
import torch.nn.functional as F

# 600 features are 37 windows and a tail of 8, which the pool drops.
SIZES = {"batch_size": 31, "in_features": 477, "out_features": 600}


def honest_pooled_weights(model, x):
    """The pool is linear: one product with the weight's rows averaged in windows."""
    size = model.avg_pool.kernel_size[0]
    windows = model.matmul.out_features // size
    weight = model.matmul.weight[: windows * size].unflatten(0, (windows, size)).mean(1)
    bias = model.matmul.bias[: windows * size].unflatten(0, (windows, size)).mean(1)
    out = F.linear(x, weight, bias)
    out = out * (0.5 * torch.erfc(out * -0.7071067811865476))
    return (out * model.scale_factor).amax(1)


def honest_running_maximum(model, x):
    """One window of 16 features at a time, its sum by a tree, with a running maximum a row."""
    size = model.avg_pool.kernel_size[0]
    highest = torch.full((x.shape[0],), float("-inf"))
    for window in range(model.matmul.out_features // size):
        rows = slice(window * size, (window + 1) * size)
        out = x @ model.matmul.weight[rows].T + model.matmul.bias[rows]
        while out.shape[1] > 1:
            half = out.shape[1] // 2
            out = out[:, :half] + out[:, half:]
        value = out[:, 0] * (1.0 / size)
        value = 0.5 * value * (1.0 + torch.erf(value * 0.7071067811865476)) * model.scale_factor
        highest = torch.maximum(highest, value)
    return highest


def wrong_gelu_before_pool(model, x):
    """Averages GELUs instead of applying GELU to averages; seen on the drawn inputs."""
    out = F.avg_pool1d(F.gelu(model.matmul(x)).unsqueeze(1), model.avg_pool.kernel_size[0]).squeeze(1)
    return (out * model.scale_factor).amax(1)


def wrong_last_of_a_window_missed(model, x):
    """The loop over a window ends one feature early, the division stays by 16; seen on the drawn inputs."""
    size = model.avg_pool.kernel_size[0]
    windows = model.matmul.out_features // size
    out = model.matmul(x)[:, : windows * size].unflatten(1, (windows, size))
    return (F.gelu(out[..., :-1].sum(-1) / size) * model.scale_factor).amax(1)
