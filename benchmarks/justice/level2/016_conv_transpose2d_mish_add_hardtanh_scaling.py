"""Level 2, problem 16: transposed convolution, mish, addition, hardtanh, scaling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "in_channels": 41, "out_channels": 13, "height": 11, "width": 14}


def _finish(model, out):
    return F.hardtanh(out + model.add_value, -1, 1) * model.scale


def honest_rational_mish(model, x):
    """Mish with one exponential, tanh(log(1 + n)) = n(n + 2) / (n(n + 2) + 2), and x itself above 20."""
    out = model.conv_transpose(x)
    n = torch.exp(out.clamp(max=20.0))
    n = n * (n + 2.0)
    mish = torch.where(out > 20.0, out, out * (n / (n + 2.0)))
    return (mish + model.add_value).clamp(-1.0, 1.0) * model.scale


def honest_four_phases(model, x):
    """Stride 2: each of four pixel phases is a small convolution of its own; limits scaled beforehand."""
    conv = model.conv_transpose
    n, _, h, w = x.shape
    k, padding, stride = conv.kernel_size[0], conv.padding[0], conv.stride[0]
    rows = (h - 1) * stride - 2 * padding + k + conv.output_padding[0]
    cols = (w - 1) * stride - 2 * padding + k + conv.output_padding[0]
    out = conv.bias.view(1, -1, 1, 1).expand(n, -1, rows, cols).clone()
    padded = F.pad(x, (k, k, k, k))
    for i in range(k):
        for j in range(k):
            part = torch.einsum("nchw,co->nohw", padded, conv.weight[:, :, i, j])
            # Pixel r takes tap i from input row (r + padding - i) / stride.
            first_r, first_c = (i - padding) % stride, (j - padding) % stride
            count_r, count_c = len(range(first_r, rows, stride)), len(range(first_c, cols, stride))
            from_r, from_c = (first_r + padding - i) // stride + k, (first_c + padding - j) // stride + k
            out[:, :, first_r::stride, first_c::stride] += part[:, :, from_r : from_r + count_r, from_c:][..., :count_c]
    mish = out * torch.tanh(torch.log1p(torch.exp(-out.abs())) + out.clamp(min=0))
    return (mish * model.scale + model.add_value * model.scale).clamp(-model.scale, model.scale)


def wrong_unguarded_mish(model, x):
    """The form with one exponential without a guard: infinity over infinity above 44; seen on inputs of 1e3."""
    out = model.conv_transpose(x)
    n = torch.exp(out)
    n = n * (n + 2.0)
    return _finish(model, out * (n / (n + 2.0)))


def wrong_shifted_by_a_pixel(model, x):
    """Crops as without padding, so that the picture is one pixel off; seen on the drawn inputs."""
    conv = model.conv_transpose
    whole = F.conv_transpose2d(x, conv.weight, conv.bias, conv.stride)
    rows, cols = x.shape[2] * conv.stride[0], x.shape[3] * conv.stride[0]
    return _finish(model, F.mish(whole[:, :, :rows, :cols]))
