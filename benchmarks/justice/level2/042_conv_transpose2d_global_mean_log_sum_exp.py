"""Level 2, problem 42: transposed convolution, global mean, bias, log-sum-exp over channels, times 10."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 23, "out_channels": 37, "height": 17, "width": 13, "bias_shape": (37, 1, 1)}


def _log_sum_exp(out):
    return torch.logsumexp(out, 1, keepdim=True)[..., 0, 0] * 10.0


def honest_sums_instead_of_convolution(model, x):
    """Every input meets every tap, so the mean needs the input's and the weight's sums only."""
    conv = model.conv_transpose
    k = conv.kernel_size[0]
    pixels = (x.shape[2] + k - 1) * (x.shape[3] + k - 1)
    out = x.sum((2, 3)) @ conv.weight.sum((2, 3)) * (1.0 / pixels)
    out = out + (conv.bias + model.bias.flatten())
    top = out.amax(1, keepdim=True)
    return (top + torch.log(torch.exp(out - top).sum(1, keepdim=True))) * 10.0


def honest_convolved_rows_then_columns(model, x):
    """The convolution with a turned kernel; running sums along rows, then columns; base-2 log-sum-exp."""
    conv = model.conv_transpose
    out = F.conv2d(x, conv.weight.flip(2, 3).transpose(0, 1), conv.bias, padding=conv.kernel_size[0] - 1)
    total = torch.zeros_like(out[..., 0])
    for column in range(out.shape[3]):
        total = total + out[..., column]
    total = total.sum(2) / (out.shape[2] * out.shape[3]) + model.bias.flatten()
    scaled = total * 1.4426950408889634
    top = scaled.amax(1, keepdim=True)
    return (top + torch.log2(torch.exp2(scaled - top).sum(1, keepdim=True))) * (10.0 * 0.6931471805599453)


def wrong_divided_by_input_size(model, x):
    """Divides by the input's pixels instead of the larger output's; seen on the drawn inputs."""
    conv = model.conv_transpose
    out = x.mean((2, 3)) @ conv.weight.sum((2, 3)) + conv.bias
    return _log_sum_exp(out[:, :, None, None] + model.bias)


def wrong_one_channel_left_out(model, x):
    """The channel loop goes in pairs and misses the last of an odd number; seen on the drawn inputs."""
    out = model.conv_transpose(x).mean((2, 3), keepdim=True) + model.bias
    return _log_sum_exp(out[:, : out.shape[1] // 2 * 2])
