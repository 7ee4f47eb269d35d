"""Level 2, problem 51: linear layer, subtraction, mean over features, GELU, added to the input."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 47, "in_features": 613, "out_features": 205}


def honest_mean_weight(model, x):
    """Mean of the product is the product with the mean weight; one number's log-sum-exp is itself."""
    weight = model.gemm.weight.mean(0)
    shift = (model.gemm.bias - model.subtract).mean()
    value = (x @ weight + shift)[:, None]
    return x + 0.5 * value * (1.0 + torch.erf(value * 0.7071067811865476))


def honest_tiled_rows(model, x):
    """Tiles of 64 features, each lane with its own sum over tiles, tree over lanes, GELU through erfc."""
    lanes = torch.zeros(x.shape[0], 64)
    for start in range(0, model.gemm.out_features, 64):
        stop = min(start + 64, model.gemm.out_features)
        tile = F.linear(x, model.gemm.weight[start:stop], model.gemm.bias[start:stop]) - model.subtract[start:stop]
        lanes[:, : stop - start] += tile
    for half in (32, 16, 8, 4, 2, 1):
        lanes = lanes[:, :half] + lanes[:, half : 2 * half]
    value = lanes * (1.0 / model.gemm.out_features)
    return torch.addcmul(x, value, 0.5 * torch.erfc(value * -0.7071067811865476))


def wrong_first_row_for_all(model, x):
    """Computes the added number for the first row only and uses it for all; seen on the drawn inputs."""
    value = (model.gemm(x[:1]) - model.subtract).mean(1, keepdim=True)
    return F.gelu(value) + x


def wrong_divided_by_input_features(model, x):
    """Divides the sum by the input's features instead of the output's; seen on the drawn inputs."""
    value = (model.gemm(x) - model.subtract).sum(1, keepdim=True) / x.shape[1]
    return F.gelu(value) + x
