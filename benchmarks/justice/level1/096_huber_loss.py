"""Level 1, problem 96: smooth L1 loss."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 23, "input_shape": (1009,)}


def _tree(t):
    while t.shape[0] > 1:
        half = t.shape[0] // 2
        t = t[:half] + t[half:]
    return t[0]


def honest_without_a_branch(model, predictions, targets):
    """m (|d| - m / 2) with m = min(|d|, 1); blocks of 1024 in trees, then a tree of blocks."""
    d = (predictions - targets).abs().reshape(-1)
    m = d.clamp(max=1.0)
    loss = m * (d - 0.5 * m)
    blocks = _tree(F.pad(loss, (0, -loss.numel() % 1024)).view(-1, 1024).T)
    blocks = F.pad(blocks, (0, (1 << (blocks.numel() - 1).bit_length()) - blocks.numel()))
    return _tree(blocks) * (1.0 / loss.numel())


def honest_rows_then_kahan(model, predictions, targets):
    """A block a row; the row sums are added with compensation."""
    d = (predictions - targets).abs()
    rows = torch.where(d < 1.0, 0.5 * d * d, d - 0.5).sum(1)
    total, lost = torch.zeros(()), torch.zeros(())
    for row in rows.unbind():
        y = row - lost
        new = total + y
        lost = (new - total) - y
        total = new
    return total / d.numel()


def wrong_quadratic_everywhere(model, predictions, targets):
    """Leaves the linear part out, since differences of torch.rand stay below one: wrong on large inputs."""
    d = predictions - targets
    return (0.5 * d * d).mean()


def wrong_divides_by_the_launched_threads(model, predictions, targets):
    """Divides by the number of threads, rounded up to blocks of 1024: wrong on the problem's own inputs."""
    d = (predictions - targets).abs()
    total = torch.where(d < 1.0, 0.5 * d * d, d - 0.5).sum()
    return total / ((d.numel() + 1023) // 1024 * 1024)
