"""Level 1, problem 39: division of rows by their L2 norm."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 13, "dim": 2503}


def honest_warp_a_row(model, x):
    """Each lane of a warp adds every 32nd square in order, shuffles add the lanes; multiplies by rsqrt."""
    lanes = F.pad(x, (0, -x.shape[1] % 32)).view(x.shape[0], -1, 32)
    total = torch.zeros(x.shape[0], 32)
    for step in lanes.unbind(1):
        total = total + step * step
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return x * torch.rsqrt(total)


def honest_block_a_row(model, x):
    """Tiles of 1024 of a row are summed and the sums added in order; divides by the root."""
    total = torch.zeros(x.shape[0], 1)
    for tile in x.split(1024, 1):
        total = total + (tile * tile).sum(1, keepdim=True)
    return x / torch.sqrt(total)


def wrong_tail_not_squared(model, x):
    """The last three elements, short of a float4, are left out of the norm: wrong on the problem's own inputs."""
    whole = x[:, : x.shape[1] // 4 * 4]
    return x / torch.sqrt((whole * whole).sum(1, keepdim=True))


def wrong_squares_in_half(model, x):
    """Squares in half precision before it adds in float32: wrong on inputs above 256, where squares overflow."""
    h = x.half()
    return x / torch.sqrt((h * h).float().sum(1, keepdim=True))
