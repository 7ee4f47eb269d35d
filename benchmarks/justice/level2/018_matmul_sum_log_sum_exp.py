"""Level 2, problem 18: linear layer, sum over features; maximum, mean and two log-sum-exps of one number."""

import torch

SIZES = {"batch_size": 45, "in_features": 611, "out_features": 403}


def honest_vector_product(model, x):
    """Summed weights and biases; what follows the sum acts on one number and changes nothing."""
    return x @ model.linear.weight.sum(0)[:, None] + model.linear.bias.sum()


def honest_tiles_and_log_sum_exp(model, x):
    """Tiles of 64 by 16, partial sums of rows added in order; the log-sum-exps as written, with their maximum."""
    total = torch.zeros(x.shape[0], 1)
    for start in range(0, model.linear.out_features, 64):
        weight = model.linear.weight[start : start + 64]
        tile = model.linear.bias[start : start + 64].expand(x.shape[0], -1)
        for k in range(0, x.shape[1], 16):
            tile = tile + x[:, k : k + 16] @ weight[:, k : k + 16].T
        total = total + tile.sum(1, keepdim=True)
    for _ in range(2):
        total = total + torch.log(torch.exp(total - total))
    return total


def wrong_log_sum_exp_without_maximum(model, x):
    """Takes exp and log of the sum itself: overflows above 88; seen on inputs of 1e3."""
    out = model.linear(x).sum(1, keepdim=True)
    return torch.log(torch.exp(torch.log(torch.exp(out))))


def wrong_last_rows_skipped(model, x):
    """The grid covers whole tiles of 16 rows, so the last 13 stay 0; seen on the drawn inputs."""
    out = model.linear(x).sum(1, keepdim=True)
    out[x.shape[0] // 16 * 16 :] = 0
    return out
