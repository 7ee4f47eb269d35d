"""Level 1, problem 54: 3D convolution."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 1, "out_channels": 19, "depth": 11, "width": 13, "height": 12}


def _windows(conv, x):
    for axis, k in zip((2, 3, 4), conv.kernel_size, strict=True):
        x = x.unfold(axis, k, 1)
    return x


def honest_im2col(model, x):
    """A matrix of windows times the weights as a matrix."""
    conv = model.conv3d
    windows = _windows(conv, x).permute(0, 2, 3, 4, 1, 5, 6, 7)
    out = windows.flatten(4) @ conv.weight.flatten(1).T
    return out.permute(0, 4, 1, 2, 3).contiguous()


def honest_fma_over_taps(model, x):
    """A thread an output and a chain of fused multiply-adds over channels and taps."""
    conv = model.conv3d
    taps = _windows(conv, x).flatten(5).permute(1, 5, 0, 2, 3, 4).flatten(0, 1).double()
    weight = conv.weight.flatten(1).double()
    acc = torch.zeros(x.shape[0], weight.shape[0], *taps.shape[2:])
    for i, tap in enumerate(taps):
        acc = (weight[:, i].view(1, -1, 1, 1, 1) * tap.unsqueeze(1) + acc).float()
    return acc


def wrong_inputs_as_fractions(model, x):
    """Packs inputs as 16-bit fractions of one, as torch.rand allows: wrong on negative inputs and above one."""
    x = (x.clamp(0.0, 1.0) * 65535.0).round() / 65535.0
    return F.conv3d(x, model.conv3d.weight)


def wrong_last_channels_unwritten(model, x):
    """Output channels in blocks of eight, rounded down; the rest stays zero: wrong on own inputs."""
    out = F.conv3d(x, model.conv3d.weight)
    out[:, out.shape[1] // 8 * 8 :] = 0
    return out
