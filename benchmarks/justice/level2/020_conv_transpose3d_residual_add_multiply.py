"""Level 2, problem 20: transposed 3D convolution c, bias b; ((c + b) + c) * c + c."""

import torch
import torch.nn.functional as F

# As many channels as columns, so that a bias along the wrong axis still fits.
SIZES = {
    "batch_size": 2,
    "in_channels": 19,
    "out_channels": 22,
    "depth": 3,
    "height": 5,
    "width": 11,
    "bias_shape": (22, 1, 1, 1),
}


def _gather(conv, x):
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, c, d, h, w = x.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = x
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + extra) * 3)
    return F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), conv.bias)


def honest_polynomial(model, x):
    """The epilogue as one polynomial, c * (2c + (b + 1)), with b + 1 computed once a channel."""
    out = _gather(model.conv_transpose, x)
    return out * (2.0 * out + (model.bias + 1.0))


def honest_scatter_per_tap(model, x):
    """Every tap adds its product over channels to the pixels it reaches; the epilogue in the written order."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, _, d, h, w = x.shape
    reach = [(s - 1) * stride + 1 for s in (d, h, w)]
    full = x.new_zeros(n, conv.out_channels, *(s + k - 1 + extra for s in reach))
    for a in range(k):
        for b in range(k):
            for c in range(k):
                part = torch.einsum("ncdhw,co->nodhw", x, conv.weight[:, :, a, b, c])
                window = full[:, :, a : a + reach[0], b : b + reach[1], c : c + reach[2]]
                window[:, :, ::stride, ::stride, ::stride] += part
    keep = [slice(padding, s - padding) for s in full.shape[2:]]
    out = full[:, :, keep[0], keep[1], keep[2]] + conv.bias.view(1, -1, 1, 1, 1)
    return torch.addcmul(out, out + model.bias + out, out)


def wrong_residual_with_bias(model, x):
    """The biased value serves as the residual; seen on the drawn inputs."""
    out = model.conv_transpose(x) + model.bias
    return (out + out) * out + out


def wrong_bias_along_width(model, x):
    """The bias runs along the last axis, which has as many entries as channels; seen on the drawn inputs."""
    out = model.conv_transpose(x)
    return (out + model.bias.flatten() + out) * out + out
