"""Level 1, problem 41: 1D max pooling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "features": 5, "sequence_length": 517}


def _taps(pool, x, fill):
    x = F.pad(x, (pool.padding, pool.padding), value=fill)
    n = (x.shape[-1] - pool.dilation * (pool.kernel_size - 1) - 1) // pool.stride + 1
    last = (n - 1) * pool.stride + 1
    return [x[..., i * pool.dilation : i * pool.dilation + last : pool.stride] for i in range(pool.kernel_size)]


def honest_tap_by_tap(model, x):
    """A thread an output walks over its taps from minus infinity."""
    taps = _taps(model.maxpool, x, -torch.inf)
    top = torch.full_like(taps[0], -torch.inf)
    for tap in taps:
        top = torch.maximum(top, tap)
    return top


def honest_tree_of_taps(model, x):
    """Maxima of pairs, then of pairs of those, as a warp with shuffles has them."""
    taps = _taps(model.maxpool, x, -torch.inf)
    while len(taps) > 1:
        taps = [torch.maximum(a, b) for a, b in zip(taps[::2], taps[1::2], strict=True)]
    return taps[0].clone()


def wrong_pads_with_zero(model, x):
    """Fills the border with zeros in place of minus infinity: wrong on negative inputs."""
    return torch.stack(_taps(model.maxpool, x, 0.0)).amax(0)


def wrong_last_tap_missing(model, x):
    """The loop over taps ends one early: wrong on the problem's own inputs."""
    return torch.stack(_taps(model.maxpool, x, -torch.inf)[:-1]).amax(0)
