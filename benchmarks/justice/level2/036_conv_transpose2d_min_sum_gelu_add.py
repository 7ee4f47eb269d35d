"""Level 2, problem 36: transposed convolution, minimum over channels, sum over height, GELU, bias.

With the problem's own sizes the sums are so negative that the output is the bias alone; two channels and few rows
keep it alive.
"""

import torch
import torch.nn.functional as F

# Square, so that a sum over the wrong axis still fits.
SIZES = {"batch_size": 7, "in_channels": 27, "out_channels": 2, "height": 7, "width": 7}


def _minima(model, x):
    return model.conv_transpose(x).amin(1, keepdim=True)


def honest_gather_running_sum(model, x):
    """Gathering form, running minimum over channels, running sum down the column, GELU with erf."""
    conv = model.conv_transpose
    stride, padding, extra, k = conv.stride[0], conv.padding[0], conv.output_padding[0], conv.kernel_size[0]
    n, c, h, w = x.shape
    spread = x.new_zeros(n, c, (h - 1) * stride + 1, (w - 1) * stride + 1)
    spread[:, :, ::stride, ::stride] = x
    low = k - 1 - padding
    spread = F.pad(spread, (low, low + extra, low, low + extra))
    out = F.conv2d(spread, conv.weight.flip(2, 3).transpose(0, 1), conv.bias)
    least = out[:, 0]
    for channel in range(1, out.shape[1]):
        least = torch.where(out[:, channel] < least, out[:, channel], least)
    total = torch.zeros_like(least[:, 0])
    for row in range(least.shape[1]):
        total = total + least[:, row]
    total = total[:, None, None]
    return 0.5 * total * (1.0 + torch.erf(total * 0.7071067811865476)) + model.bias


def honest_two_halves(model, x):
    """Channels split in two halves for the product; sum over height as two halves; GELU through erfc."""
    conv = model.conv_transpose
    middle = x.shape[1] // 2
    settings = {"stride": conv.stride, "padding": conv.padding, "output_padding": conv.output_padding}
    out = F.conv_transpose2d(x[:, middle:], conv.weight[middle:], conv.bias, **settings)
    out = out + F.conv_transpose2d(x[:, :middle], conv.weight[:middle], None, **settings)
    least = out.amin(1, keepdim=True)
    half = least.shape[2] // 2
    total = least[:, :, :half].sum(2, keepdim=True) + least[:, :, half:].sum(2, keepdim=True)
    return total * (0.5 * torch.erfc(total * -0.7071067811865476)) + model.bias


def wrong_summed_over_width(model, x):
    """Sums over the width and lays the result out as a row; seen on the drawn inputs."""
    return F.gelu(_minima(model, x).sum(3, keepdim=True)).transpose(2, 3) + model.bias


def wrong_lost_updates(model, x):
    """Rows add to one place without atomics, and every seventh update is lost; seen on the drawn inputs."""
    least = _minima(model, x)
    kept = torch.arange(least.shape[2]) % 7 != 3
    return F.gelu(least[:, :, kept].sum(2, keepdim=True)) + model.bias
