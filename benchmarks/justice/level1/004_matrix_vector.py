"""Level 1, problem 4: matrix times vector."""

import torch
import torch.nn.functional as F

SIZES = {"M": 61, "K": 20011}


def _tree(t):
    while t.shape[-1] > 1:
        half = t.shape[-1] // 2
        t = t[..., :half] + t[..., half:]
    return t


def _lanes(t, lanes):
    return F.pad(t, (0, -t.shape[1] % lanes)).view(t.shape[0], -1, lanes)


def honest_block_per_row(model, a, b):
    """A block of 256 threads strides along each row with running sums, then adds them in a tree.

    Sums are near 5000 with a spread of 26, so an ulp of theirs is 2e-5 of the spread.
    """
    products = _lanes(a * b[:, 0], 256)
    total = torch.zeros(a.shape[0], 256)
    for step in products.unbind(1):
        total = total + step
    return _tree(total)


def honest_warp_with_kahan(model, a, b):
    """A warp a row; each lane's sum is compensated, and shuffles add the 32 lanes.

    Sums are near 5000 with a spread of 26, so an ulp of theirs is 2e-5 of the spread.
    """
    products = _lanes(a * b[:, 0], 32)
    total, lost = torch.zeros(a.shape[0], 32), torch.zeros(a.shape[0], 32)
    for step in products.unbind(1):
        y = step - lost
        new = total + y
        lost = (new - total) - y
        total = new
    return _tree(total)


def wrong_thread_sums_in_half(model, a, b):
    """Each thread keeps its running sum in half precision: wrong on the problem's own inputs."""
    products = _lanes(a * b[:, 0], 256).half()
    total = torch.zeros(a.shape[0], 256, dtype=torch.float16)
    for step in products.unbind(1):
        total = total + step
    return _tree(total.float())


def wrong_takes_the_vector_for_its_mean(model, a, b):
    """Multiplies each row's sum by the vector's mean, as if all were equal: wrong on the problem's own inputs."""
    return a.sum(1, keepdim=True) * b.mean()
