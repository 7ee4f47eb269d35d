"""Level 2, problem 26: transposed 3D convolution plus a second input, times its own hardswish."""

import torch
import torch.nn.functional as F

SIZES = {
    "batch_size": 3,
    "in_channels": 21,
    "out_channels": 11,
    "D": 3,
    "H": 5,
    "W": 7,
    "bias_shape": (11, 1, 1, 1, 1),
}


def honest_gather_square(model, x, add_input):
    """Gathering form; x * hardswish(x) as x squared times a clamped line, with a product for the sixth."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, c, d, h, w = x.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = x
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + extra) * 3)
    out = F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), conv.bias) + add_input
    return out * out * ((out + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0))


def honest_accumulator_starts_at_second_input(model, x, add_input):
    """The accumulator starts at bias plus second input and takes one tap after the other."""
    conv = model.conv_transpose
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    reach = [(s - 1) * stride + 1 for s in x.shape[2:]]
    start = add_input + conv.bias.view(1, -1, 1, 1, 1)
    full = F.pad(start, (padding, k) * 3)
    for a in range(k):
        for b in range(k):
            for c in range(k):
                part = torch.einsum("ncdhw,co->nodhw", x, conv.weight[:, :, a, b, c])
                window = full[:, :, a : a + reach[0], b : b + reach[1], c : c + reach[2]]
                window[:, :, ::stride, ::stride, ::stride] += part
    keep = [slice(padding, padding + s) for s in add_input.shape[2:]]
    out = full[:, :, keep[0], keep[1], keep[2]]
    return out * torch.where(out <= -3.0, 0.0, torch.where(out >= 3.0, out, out * (out * (1.0 / 6.0) + 0.5)))


def wrong_unused_bias_added(model, x, add_input):
    """Adds the module's bias parameter, which forward never uses; seen on the drawn inputs."""
    out = model.conv_transpose(x) + add_input + model.bias.view(-1, 1, 1, 1)
    return out * F.hardswish(out)


def wrong_lower_clamp_left_out(model, x, add_input):
    """Assumes values above -3, as drawn inputs give them, and leaves out the clamp at 0; seen on inputs of 1e3."""
    out = model.conv_transpose(x) + add_input
    return out * out * (out + 3.0).clamp(max=6.0) / 6.0
