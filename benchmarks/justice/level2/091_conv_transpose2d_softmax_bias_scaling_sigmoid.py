"""Level 2, problem 91: transposed convolution, softmax over channels, bias, scaling, sigmoid."""

import torch
import torch.nn.functional as F

SIZES = {
    "batch_size": 3,
    "in_channels": 29,
    "out_channels": 23,
    "height": 9,
    "width": 11,
    "bias_shape": (23, 1, 1),
}


def honest_gather_sigmoid_through_tanh(model, x):
    """Gathering form; softmax weights times the scale in one factor; sigmoid through tanh."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, c, h, w = x.shape
    spread = x.new_zeros(n, c, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride] = x
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + extra, low, low + extra))
    out = F.conv2d(spread, conv.weight.flip(2, 3).transpose(0, 1), conv.bias)
    out = torch.exp(out - out.amax(1, keepdim=True))
    factor = model.scaling_factor / out.sum(1, keepdim=True)
    return 0.5 + 0.5 * torch.tanh(0.5 * (out * factor + model.bias * model.scaling_factor))


def honest_scatter_online_softmax(model, x):
    """Taps scattered one by one; running maximum and sum over channels; sigmoid by a reciprocal and exp2."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    reach = [(s - 1) * stride + 1 for s in x.shape[2:]]
    full = x.new_zeros(x.shape[0], conv.out_channels, *(s + k - 1 + extra for s in reach))
    for i in range(k):
        for j in range(k):
            part = torch.einsum("nchw,co->nohw", x, conv.weight[:, :, i, j])
            full[:, :, i : i + reach[0], j : j + reach[1]][:, :, ::stride, ::stride] += part
    out = full[:, :, padding : full.shape[2] - padding, padding : full.shape[3] - padding]
    out = out + conv.bias[:, None, None]
    top = torch.full_like(out[:, :1], float("-inf"))
    total = torch.zeros_like(top)
    for channel in out.split(1, 1):
        higher = torch.maximum(top, channel)
        total = total * torch.exp(top - higher) + torch.exp(channel - higher)
        top = higher
    out = (torch.exp(out - top) / total + model.bias) * model.scaling_factor
    return torch.reciprocal(1.0 + torch.exp2(out * -1.4426950408889634))


def wrong_bias_within_softmax(model, x):
    """Adds the bias to the logits, before the softmax; seen on the drawn inputs."""
    out = torch.softmax(model.conv_transpose(x) + model.bias, 1)
    return torch.sigmoid(out * model.scaling_factor)


def wrong_scaled_before_bias(model, x):
    """Scales the softmax before the bias is added; seen on the drawn inputs."""
    out = torch.softmax(model.conv_transpose(x), 1) * model.scaling_factor
    return torch.sigmoid(out + model.bias)
