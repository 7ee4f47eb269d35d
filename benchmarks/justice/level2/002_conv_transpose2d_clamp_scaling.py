"""Level 2, problem 2: transposed convolution, bias, clamp, scaling, clamp, division."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "in_channels": 37, "out_channels": 11, "height": 13, "width": 9, "bias_shape": (11, 1, 1)}


def _gather(conv, x, output_padding):
    """Each output pixel gathers from the input spread by the stride."""
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    n, c, h, w = x.shape
    spread = x.new_zeros(n, c, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride] = x
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + output_padding, low, low + output_padding))
    return F.conv2d(spread, conv.weight.flip(2, 3).transpose(0, 1), conv.bias)


def honest_gather_single_clamp(model, x):
    """Gathering form; clamp, scale, clamp, divide are one clamp to [0, min(1, 1/scale)], exact for a scale of 2."""
    out = _gather(model.conv_transpose, x, model.conv_transpose.output_padding[0]) + model.bias
    return out.clamp(0.0, min(1.0, 1.0 / model.scaling_factor))


def honest_scatter_per_tap(model, x):
    """Tap by tap: a product over the channels, added to every second pixel, then cropped by the padding."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, _, h, w = x.shape
    full = x.new_zeros(n, conv.out_channels, (h - 1) * stride + k + extra, (w - 1) * stride + k + extra)
    for i in range(k):
        for j in range(k):
            part = torch.einsum("nchw,co->nohw", x, conv.weight[:, :, i, j])
            full[:, :, i : i + (h - 1) * stride + 1 : stride, j : j + (w - 1) * stride + 1 : stride] += part
    rows, cols = (h - 1) * stride - 2 * padding + k + extra, (w - 1) * stride - 2 * padding + k + extra
    out = full[:, :, padding : padding + rows, padding : padding + cols]
    out = out + (conv.bias.view(1, -1, 1, 1) + model.bias)
    out = out.clamp(0.0, 1.0) * model.scaling_factor
    return out.clamp(0.0, 1.0) * (1.0 / model.scaling_factor)


def wrong_output_padding_left_out(model, x):
    """Computes the size without output padding; the last row and column hold the biases only; drawn inputs."""
    out = F.pad(_gather(model.conv_transpose, x, 0) - model.conv_transpose.bias.view(1, -1, 1, 1), (0, 1, 0, 1))
    out = (out + model.conv_transpose.bias.view(1, -1, 1, 1) + model.bias).clamp(0.0, 1.0)
    return (out * model.scaling_factor).clamp(0.0, 1.0) / model.scaling_factor


def wrong_second_clamp_dropped(model, x):
    """Multiplication and division are cancelled without the clamp between them; seen on the drawn inputs."""
    return (model.conv_transpose(x) + model.bias).clamp(0.0, 1.0)
