"""Level 1, problem 43: 3D max pooling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "channels": 2, "dim1": 17, "dim2": 19, "dim3": 22}


def _along(pool, x, axis):
    n = (x.shape[axis] - pool.dilation * (pool.kernel_size - 1) - 1) // pool.stride + 1
    for i in range(pool.kernel_size):
        yield x.index_select(axis, torch.arange(n) * pool.stride + i * pool.dilation)


def _cube(pool, x):
    for a in _along(pool, x, 2):
        for b in _along(pool, a, 3):
            yield from _along(pool, b, 4)


def honest_all_taps(model, x):
    """A thread an output walks over its 27 taps and skips those outside."""
    pool = model.maxpool
    top = None
    for tap in _cube(pool, F.pad(x, (pool.padding,) * 6, value=-torch.inf)):
        top = tap if top is None else torch.maximum(top, tap)
    return top


def honest_axis_by_axis(model, x):
    """The maximum of a box is that of lines of planes: three passes, one an axis."""
    pool = model.maxpool
    x = F.pad(x, (pool.padding,) * 6, value=-torch.inf)
    for axis in (4, 3, 2):
        x = torch.stack(list(_along(pool, x, axis))).amax(0)
    return x


def wrong_starts_at_flt_min(model, x):
    """The maximum starts at FLT_MIN, which is a small positive number: wrong on negative inputs."""
    pool = model.maxpool
    start = torch.tensor(torch.finfo(torch.float32).tiny)
    for tap in _cube(pool, F.pad(x, (pool.padding,) * 6, value=-torch.inf)):
        start = torch.maximum(start, tap)
    return start


def wrong_border_reads_a_neighbour(model, x):
    """Does not check the last axis, so the border reads the ends of neighbour rows: wrong on own inputs."""
    pool = model.maxpool
    p = pool.padding
    left = torch.roll(x[..., -p:], 1, 3)
    right = torch.roll(x[..., :p], -1, 3)
    x = F.pad(torch.cat([left, x, right], 4), (0, 0, p, p, p, p), value=-torch.inf)
    return torch.stack(list(_cube(pool, x))).amax(0)
