"""Level 2, problem 55: linear layer, max pool over pairs of features, sum, scaling."""

import torch
import torch.nn.functional as F

# An odd number of features: the last has no partner and is dropped.
SIZES = {"batch_size": 39, "in_features": 811, "out_features": 403}


def honest_pair_at_once(model, x):
    """Even and odd features in two products, their maximum, one running sum over the pairs."""
    weight, bias = model.matmul.weight, model.matmul.bias
    pairs = model.matmul.out_features // 2
    even = F.linear(x, weight[0 : 2 * pairs : 2], bias[0 : 2 * pairs : 2])
    odd = F.linear(x, weight[1 : 2 * pairs : 2], bias[1 : 2 * pairs : 2])
    larger = torch.maximum(even, odd)
    total = torch.zeros(x.shape[0])
    for i in range(pairs):
        total = total + larger[:, i]
    return total * model.scale_factor


def honest_blocks_then_pairwise(model, x):
    """Inner blocks of 64 with the bias as start; scale in each term; pairwise sum over the row."""
    out = model.matmul.bias.expand(x.shape[0], -1)
    for k in range(0, x.shape[1], 64):
        out = out + x[:, k : k + 64] @ model.matmul.weight[:, k : k + 64].T
    out = out[:, : out.shape[1] // 2 * 2].unflatten(1, (-1, 2)).amax(2) * model.scale_factor
    while out.shape[1] > 1:
        out = F.pad(out, (0, out.shape[1] % 2))
        out = out[:, 0::2] + out[:, 1::2]
    return out[:, 0]


def wrong_last_feature_counted(model, x):
    """Adds the last feature, which has no partner, too; seen on the drawn inputs."""
    out = model.matmul(x)
    total = F.max_pool1d(out.unsqueeze(1), 2).squeeze(1).sum(1) + out[:, -1]
    return total * model.scale_factor


def wrong_pairs_half_a_row_apart(model, x):
    """Pairs a feature with the one half a row away instead of its neighbour; seen on the drawn inputs."""
    out = model.matmul(x)
    half = out.shape[1] // 2
    return torch.maximum(out[:, :half], out[:, half : 2 * half]).sum(1) * model.scale_factor
