"""Level 2, problem 34: transposed 3D convolution, layer norm over the last axis, GELU, scaling."""

import torch
import torch.nn.functional as F

# The norm's length is the number of output channels and must be the output's width.
SIZES = {"batch_size": 2, "in_channels": 11, "out_channels": 26, "D": 3, "H": 4, "W": 13}


def honest_even_and_odd_columns(model, x):
    """Turned kernel on the spread input; the row's moments from even and odd columns, merged; GELU through erfc."""
    conv, norm = model.conv_transpose, model.layer_norm
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    n, c, d, h, w = x.shape
    spread = x.new_zeros(n, c, (d - 1) * stride + 1, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride, ::stride] = x
    out = F.conv3d(spread, conv.weight.flip(2, 3, 4).transpose(0, 1), conv.bias, padding=k - 1 - padding)
    even, odd = out[..., 0::2], out[..., 1::2]
    even_var, even_mean = torch.var_mean(even, -1, correction=0, keepdim=True)
    odd_var, odd_mean = torch.var_mean(odd, -1, correction=0, keepdim=True)
    half = (odd_mean - even_mean) * 0.5
    var = (even_var + odd_var) * 0.5 + half * half
    out = (out - (even_mean + half)) * torch.rsqrt(var + norm.eps) * norm.weight + norm.bias
    return out * (0.5 * model.scaling_factor) * torch.erfc(out * -0.7071067811865476)


def honest_scatter_two_pass(model, x):
    """Taps scattered one by one, two passes a row, GELU with erf."""
    conv, norm = model.conv_transpose, model.layer_norm
    stride, padding, k = conv.stride[0], conv.padding[0], conv.kernel_size[0]
    reach = [(s - 1) * stride + 1 for s in x.shape[2:]]
    full = x.new_zeros(x.shape[0], conv.out_channels, *(s + k - 1 for s in reach))
    for a in range(k):
        for b in range(k):
            for c in range(k):
                part = torch.einsum("ncdhw,co->nodhw", x, conv.weight[:, :, a, b, c])
                window = full[:, :, a : a + reach[0], b : b + reach[1], c : c + reach[2]]
                window[:, :, ::stride, ::stride, ::stride] += part
    keep = [slice(padding, s - padding) for s in full.shape[2:]]
    out = full[:, :, keep[0], keep[1], keep[2]] + conv.bias.view(1, -1, 1, 1, 1)
    out = out - out.sum(-1, keepdim=True) / out.shape[-1]
    out = out / torch.sqrt((out * out).sum(-1, keepdim=True) / out.shape[-1] + norm.eps)
    out = out * norm.weight + norm.bias
    return out * (0.5 + 0.5 * torch.erf(out * 0.7071067811865476)) * model.scaling_factor


def wrong_tanh_gelu(model, x):
    """GELU by the tanh formula instead of erf; up to 5e-4 off, seen on the drawn inputs."""
    return F.gelu(model.layer_norm(model.conv_transpose(x)), approximate="tanh") * model.scaling_factor


def wrong_eps_left_out(model, x):
    """The norm without eps; seen on the drawn inputs, plainly on tiny ones."""
    norm, out = model.layer_norm, model.conv_transpose(x)
    var, mean = torch.var_mean(out, -1, correction=0, keepdim=True)
    return F.gelu((out - mean) * torch.rsqrt(var) * norm.weight + norm.bias) * model.scaling_factor
