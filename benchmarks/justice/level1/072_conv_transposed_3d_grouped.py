"""Level 1, problem 72: transposed 3D convolution with stride, padding and groups."""

import itertools

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "in_channels": 8, "out_channels": 12, "depth": 4, "height": 6, "width": 7}


def _scatter(conv, x, weight):
    n, groups = x.shape[0], conv.groups
    spatial = x.shape[2:]
    full = [(i - 1) * s + k for i, s, k in zip(spatial, conv.stride, conv.kernel_size, strict=True)]
    room = [f + o for f, o in zip(full, conv.output_padding, strict=True)]
    out = torch.zeros(n, groups, weight.shape[1], *room)
    xs = x.view(n, groups, -1, *spatial)
    ws = weight.view(groups, -1, *weight.shape[1:])
    for tap in itertools.product(*map(range, conv.kernel_size)):
        where = tuple(slice(t, t + (i - 1) * s + 1, s) for t, i, s in zip(tap, spatial, conv.stride, strict=True))
        out[(slice(None),) * 3 + where] += torch.einsum("ngcdhw,gco->ngodhw", xs, ws[(..., *tap)])
    crop = tuple(slice(p, r - p) for p, r in zip(conv.padding, room, strict=True))
    return out.flatten(1, 2)[(slice(None),) * 2 + crop].contiguous()


def honest_scatter(model, x):
    """A pass a tap that adds its products to a zeroed output at stride distance."""
    return _scatter(model.conv_transpose3d, x, model.conv_transpose3d.weight)


def honest_gather_from_stuffed_input(model, x):
    """Puts zeros between inputs and gathers windows with the mirrored kernel, one matrix product a group."""
    conv = model.conv_transpose3d
    n, c, *spatial = x.shape
    stuffed = torch.zeros(n, c, *[(i - 1) * s + 1 for i, s in zip(spatial, conv.stride, strict=True)])
    stuffed[:, :, :: conv.stride[0], :: conv.stride[1], :: conv.stride[2]] = x
    pads = []
    for k, p, o in zip(conv.kernel_size, conv.padding, conv.output_padding, strict=True):
        pads = [k - 1 - p, k - 1 - p + o, *pads]
    windows = F.pad(stuffed, pads)
    for axis, k in zip((2, 3, 4), conv.kernel_size, strict=True):
        windows = windows.unfold(axis, k, 1)
    windows = windows.unflatten(1, (conv.groups, -1))
    weight = conv.weight.flip(2, 3, 4).unflatten(0, (conv.groups, -1))
    return torch.einsum("ngcdhwijk,gcoijk->ngodhw", windows, weight).flatten(1, 2)


def wrong_output_padding_unwritten(model, x):
    """The slices that output padding adds stay zero, though taps reach them: wrong on the problem's own inputs."""
    out = _scatter(model.conv_transpose3d, x, model.conv_transpose3d.weight)
    out[:, :, -1] = 0
    out[:, :, :, -1] = 0
    out[:, :, :, :, -1] = 0
    return out


def wrong_groups_of_the_output_swapped(model, x):
    """Writes group and channel within it in the other order: wrong on the problem's own inputs."""
    conv = model.conv_transpose3d
    out = _scatter(conv, x, conv.weight)
    return out.unflatten(1, (conv.groups, -1)).transpose(1, 2).flatten(1, 2)
