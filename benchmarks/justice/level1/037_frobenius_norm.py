"""Level 1, problem 37: division by the Frobenius norm."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 3, "features": 7, "dim1": 37, "dim2": 41}


def honest_blocks_and_last_block(model, x):
    """Blocks of 1024 add their squares in trees, the last block to finish adds the sums; then rsqrt."""
    flat = F.pad(x.reshape(-1), (0, -x.numel() % 1024)).view(-1, 1024)
    part = flat * flat
    while part.shape[1] > 1:
        half = part.shape[1] // 2
        part = part[:, :half] + part[:, half:]
    total = torch.zeros(())
    for p in part[:, 0].unbind():
        total = total + p
    return x * torch.rsqrt(total)


def honest_scaled_by_the_maximum(model, x):
    """Divides by the largest magnitude before it squares, as BLAS does, so nothing overflows."""
    top = x.abs().amax().clamp(min=torch.finfo(torch.float32).tiny)
    y = x / top
    return y / torch.sqrt((y * y).sum((2, 3)).sum())


_norms = {}


def wrong_norm_of_the_first_call(model, x):
    """Keeps the norm of the first input of a shape: right on the first call, wrong on every other input after it."""
    if x.shape not in _norms:
        _norms[x.shape] = torch.sqrt((x * x).sum())
    return x / _norms[x.shape]


def wrong_expected_norm(model, x):
    """Divides by sqrt(n / 3), the norm that uniform inputs have on average: wrong on the problem's own inputs."""
    return x * (3.0 / x.numel()) ** 0.5
