"""Level 2, problem 68: linear layer, minimum with a constant, minus the constant."""

import torch

SIZES = {"batch_size": 35, "in_features": 911, "out_features": 187}


def honest_negative_relu(model, x):
    """The constant goes into the bias; what is left is a clamp at 0 from above."""
    bias = model.linear.bias - model.constant
    out = torch.zeros(x.shape[0], bias.shape[0])
    for k in range(0, x.shape[1], 32):
        out = out + x[:, k : k + 32] @ model.linear.weight[:, k : k + 32].T
    return (out + bias).clamp(max=0.0)


def honest_interleaved_lanes(model, x):
    """Each of 32 lanes takes every 32nd product, then a tree over the lanes; epilogue as written."""
    weight = model.linear.weight.T
    lanes = [x[:, lane::32] @ weight[lane::32] for lane in range(32)]
    for half in (16, 8, 4, 2, 1):
        lanes = [lanes[i] + lanes[i + half] for i in range(half)]
    out = lanes[0] + model.linear.bias
    return torch.where(out < model.constant, out, model.constant) - model.constant


def wrong_minimum_left_out(model, x):
    """Drawn values stay below the constant, so the minimum is dropped; seen on inputs of 1e3."""
    return model.linear(x) - model.constant


def wrong_bias_dropped(model, x):
    """The linear layer's bias is not added; seen on the drawn inputs."""
    return torch.minimum(x @ model.linear.weight.T, model.constant) - model.constant
