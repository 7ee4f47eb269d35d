"""Level 1, problem 44: 1D average pooling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "in_channels": 5, "input_length": 1021}


def _taps(pool, x):
    k, s, p = pool.kernel_size[0], pool.stride[0], pool.padding[0]
    n = (x.shape[-1] + 2 * p - k) // s + 1
    x = F.pad(x, (p, p))
    return [x[..., i : i + (n - 1) * s + 1 : s] for i in range(k)]


def honest_running_sum(model, x):
    """A thread an output adds its taps in order and multiplies by the reciprocal of their number."""
    total = 0.0
    taps = _taps(model.avg_pool, x)
    for tap in taps:
        total = total + tap
    return total * (1.0 / len(taps))


def honest_pairs_of_pairs(model, x):
    """Adds neighbours, then sums two apart, then four apart, and divides."""
    taps = _taps(model.avg_pool, x)
    number = len(taps)
    while len(taps) > 1:
        taps = [a + b for a, b in zip(taps[::2], taps[1::2], strict=True)]
    return taps[0] / number


def wrong_divides_by_valid_taps(model, x):
    """Does not count the padding in the divisor at both ends: wrong on the problem's own inputs."""
    return sum(_taps(model.avg_pool, x)) / sum(_taps(model.avg_pool, torch.ones_like(x)))


def wrong_one_short_on_the_left(model, x):
    """Pads one less on the left and one more on the right: wrong on the problem's own inputs."""
    pool = model.avg_pool
    k, p = pool.kernel_size[0], pool.padding[0]
    return F.pad(x, (p - 1, p + 1)).unfold(2, k, pool.stride[0]).sum(3) / k
