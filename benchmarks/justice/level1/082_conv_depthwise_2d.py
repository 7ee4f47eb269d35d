"""Level 1, problem 82: depthwise 2D convolution."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "in_channels": 5, "width": 53, "height": 57}


def honest_nine_fmas(model, x):
    """A thread an output and nine fused multiply-adds."""
    weight = model.conv2d.weight.double()
    h, w = x.shape[2] - 2, x.shape[3] - 2
    acc = torch.zeros(x.shape[0], x.shape[1], h, w)
    for r in range(3):
        for s in range(3):
            tap = x[:, :, r : r + h, s : s + w].double()
            acc = (tap * weight[:, 0, r, s].view(1, -1, 1, 1) + acc).float()
    return acc


def honest_rows_in_registers(model, x):
    """Each kernel row's sum first, then the three row sums, last row first."""
    weight = model.conv2d.weight
    h = x.shape[2] - 2
    rows = []
    for r in range(3):
        window = x[:, :, r : r + h].unfold(3, 3, 1)
        kernel = weight[:, 0, r].view(1, -1, 1, 1, 3)
        p = window * kernel
        rows.append((p[..., 0] + p[..., 1]) + p[..., 2])
    return (rows[2] + rows[1]) + rows[0]


def wrong_weights_of_the_first_channel(model, x):
    """The weight's address leaves out the channel: wrong on the problem's own inputs."""
    weight = model.conv2d.weight[:1].expand(x.shape[1], -1, -1, -1)
    return F.conv2d(x, weight, groups=x.shape[1])


def wrong_no_halo_between_tiles(model, x):
    """Tiles of 32 rows read zeros below their own rows: wrong on the problem's own inputs."""
    weight = model.conv2d.weight
    parts = [F.conv2d(F.pad(part, (0, 0, 0, 2)), weight, groups=x.shape[1]) for part in x.split(32, 2)]
    return torch.cat(parts, 2)[:, :, : x.shape[2] - 2]
