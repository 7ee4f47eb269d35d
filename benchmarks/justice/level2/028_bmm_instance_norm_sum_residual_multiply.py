"""Level 2, problem 28: linear layer, norm over each row, plus y, times y."""

import torch
import torch.nn.functional as F

# As many rows as features, so that a transposed y still fits.
SIZES = {"batch_size": 97, "in_features": 411, "out_features": 97}


def _norm_rows(out, eps):
    var, mean = torch.var_mean(out, 1, correction=0, keepdim=True)
    return (out - mean) * torch.rsqrt(var + eps)


def honest_centred_weights(model, x, y):
    """The weight's mean over its rows is subtracted beforehand, so the product comes out centred."""
    weight = model.bmm.weight - model.bmm.weight.mean(0)
    bias = model.bmm.bias - model.bmm.bias.mean()
    out = x @ weight.T + bias
    scale = torch.rsqrt((out * out).mean(1, keepdim=True) + model.instance_norm.eps)
    return (out * scale + y) * y


def honest_welford_and_expanded(model, x, y):
    """Inner blocks of 16; Welford along the row; the epilogue as a multiply-add onto y squared."""
    out = model.bmm.bias.expand(x.shape[0], -1)
    for k in range(0, x.shape[1], 16):
        out = out + x[:, k : k + 16] @ model.bmm.weight[:, k : k + 16].T
    mean, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for i in range(out.shape[1]):
        delta = out[:, i] - mean
        mean = mean + delta / (i + 1)
        squares = squares + delta * (out[:, i] - mean)
    root = torch.sqrt(squares / out.shape[1] + model.instance_norm.eps)
    return torch.addcmul(y * y, (out - mean[:, None]) / root[:, None], y)


def wrong_normed_over_batch(model, x, y):
    """Norms each feature over the batch instead of each row; seen on the drawn inputs."""
    out = _norm_rows(F.linear(x, model.bmm.weight, model.bmm.bias).T, model.instance_norm.eps).T
    return (out + y) * y


def wrong_second_input_transposed(model, x, y):
    """Reads y column by column, which its square shape lets pass; seen on the drawn inputs."""
    out = _norm_rows(model.bmm(x), model.instance_norm.eps)
    return (out + y.T) * y.T
