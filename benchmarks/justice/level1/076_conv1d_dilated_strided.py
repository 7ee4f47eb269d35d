"""Level 1, problem 76: 1D convolution with stride and dilation."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "in_channels": 33, "out_channels": 35, "length": 1000}


def _taps(conv, x, dilation):
    k, s = conv.kernel_size[0], conv.stride[0]
    n = (x.shape[2] - conv.dilation[0] * (k - 1) - 1) // s + 1
    return [x[:, :, i * dilation : i * dilation + (n - 1) * s + 1 : s] for i in range(k)]


def honest_matmul_a_tap(model, x):
    """Gathers every third input at each tap's offset and multiplies by the tap's weights."""
    conv = model.conv1d
    return sum(conv.weight[:, :, i] @ tap for i, tap in enumerate(_taps(conv, x, conv.dilation[0])))


def honest_running_sum(model, x):
    """A thread an output and a plain running sum over channels and taps."""
    conv = model.conv1d
    taps = _taps(conv, x, conv.dilation[0])
    acc = torch.zeros(x.shape[0], conv.out_channels, taps[0].shape[2])
    for c in range(x.shape[1]):
        for i, tap in enumerate(taps):
            acc = acc + conv.weight[:, c, i].view(1, -1, 1) * tap[:, c : c + 1]
    return acc


def wrong_dilation_ignored(model, x):
    """Reads neighbouring inputs as if dilation were one: wrong on the problem's own inputs."""
    conv = model.conv1d
    return sum(conv.weight[:, :, i] @ tap for i, tap in enumerate(_taps(conv, x, 1)))


def wrong_channel_tail_left_out(model, x):
    """Input channels in blocks of eight, rounded down: wrong on the problem's own inputs."""
    conv = model.conv1d
    c = x.shape[1] // 8 * 8
    return F.conv1d(x[:, :c], conv.weight[:, :c], None, conv.stride, 0, conv.dilation)
