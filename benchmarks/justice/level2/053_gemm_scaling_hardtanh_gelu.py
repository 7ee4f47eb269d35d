"""Level 2, problem 53: linear layer, scaling, hardtanh, GELU."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 61, "in_features": 517, "out_features": 131}


def _tf32(t):
    """Round to the 10 mantissa bits of TF32, ties to even."""
    bits = t.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & -8192).view(torch.float32)


def honest_folded_scale(model, x):
    """Weight and bias are scaled beforehand; one running sum along the inner axis; GELU through erfc."""
    weight, bias = model.gemm.weight * model.scaling_factor, model.gemm.bias * model.scaling_factor
    out = bias.expand(x.shape[0], -1).clone()
    for k in range(x.shape[1]):
        out.addcmul_(x[:, k : k + 1], weight[:, k])
    out = out.clamp(model.hardtanh.min_val, model.hardtanh.max_val)
    return out * (0.5 * torch.erfc(out * -0.7071067811865476))


def honest_split_bfloat16(model, x):
    """Three bfloat16 parts a number, six products, small ones first; epilogue in the written order."""

    def parts(t):
        high = t.bfloat16().float()
        middle = (t - high).bfloat16().float()
        return high, middle, (t - high - middle).bfloat16().float()

    left, right = parts(x), parts(model.gemm.weight.T)
    out = sum(left[i] @ right[j] for i, j in ((0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)))
    out = (out + model.gemm.bias) * model.scaling_factor
    out = torch.minimum(torch.maximum(out, torch.tensor(model.hardtanh.min_val)), torch.tensor(model.hardtanh.max_val))
    return 0.5 * out * (1.0 + torch.erf(out * 0.7071067811865476))


def wrong_clamped_after_gelu(model, x):
    """Clamps GELU's result; values between the limits hide it; seen on inputs of 1e3."""
    return model.hardtanh(F.gelu(model.gemm(x) * model.scaling_factor))


def wrong_single_tf32_product(model, x):
    """One TF32 product, as tensor cores give it unless told otherwise; seen on the drawn inputs."""
    out = _tf32(x) @ _tf32(model.gemm.weight).T + model.gemm.bias
    return F.gelu(model.hardtanh(out * model.scaling_factor))
