"""Level 2, problem 40: linear layer, scaled, plus itself."""

import torch

SIZES = {"batch_size": 37, "in_features": 709, "out_features": 211}


def _tf32(t):
    """Round to the 10 mantissa bits of TF32, ties to even."""
    bits = t.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & -8192).view(torch.float32)


def honest_factor_and_3xtf32(model, x):
    """Scaling and residual are one factor; three TF32 products in slices of 32 for one float32 product."""
    out = torch.zeros(x.shape[0], model.matmul.out_features)
    for k in range(0, x.shape[1], 32):
        left, right = x[:, k : k + 32], model.matmul.weight[:, k : k + 32].T
        big_l, big_r = _tf32(left), _tf32(right)
        small_l, small_r = _tf32(left - big_l), _tf32(right - big_r)
        out = out + (small_l @ big_r + big_l @ small_r + big_l @ big_r)
    return (out + model.matmul.bias) * (model.scaling_factor + 1.0)


def honest_kahan_product(model, x):
    """Kahan summation along the inner axis, residual added by a multiply-add."""
    total = torch.zeros(x.shape[0], model.matmul.out_features)
    lost = torch.zeros_like(total)
    for k in range(x.shape[1]):
        value = x[:, k : k + 1] * model.matmul.weight[:, k] - lost
        grown = total + value
        lost = (grown - total) - value
        total = grown
    out = total + model.matmul.bias
    return torch.add(out, out, alpha=model.scaling_factor)


def wrong_half_accumulator(model, x):
    """Multiplies in slices of 32 and keeps the sum in half precision; seen on the drawn inputs."""
    out = torch.zeros(x.shape[0], model.matmul.out_features, dtype=torch.float16)
    for k in range(0, x.shape[1], 32):
        out = out + (x[:, k : k + 32] @ model.matmul.weight[:, k : k + 32].T).half()
    return (out.float() + model.matmul.bias) * (model.scaling_factor + 1.0)


def wrong_residual_without_bias(model, x):
    """The residual is the product before its bias; seen on the drawn inputs."""
    product = x @ model.matmul.weight.T
    return (product + model.matmul.bias) * model.scaling_factor + product
