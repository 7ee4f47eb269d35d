"""Level 1, problem 99: triplet margin loss."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 31, "input_shape": (1009,)}


def _distance(loss_fn, a, b):
    d = (a - b) + loss_fn.eps
    return torch.sqrt((d * d).sum(1))


def honest_fused_rows(model, anchor, positive, negative):
    """One block a row keeps both sums of squares in 128 threads with fused multiply-adds, then trees."""
    fn = model.loss_fn
    distances = []
    for other in (positive, negative):
        d = F.pad((anchor - other) + fn.eps, (0, -anchor.shape[1] % 128)).view(anchor.shape[0], -1, 128).double()
        total = torch.zeros(anchor.shape[0], 128)
        for step in d.unbind(1):
            total = (step * step + total).float()
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = total[:, :half] + total[:, half:]
        distances.append(torch.sqrt(total[:, 0]))
    return (distances[0] - distances[1] + fn.margin).clamp(min=0.0).sum() / anchor.shape[0]


def honest_three_kernels(model, anchor, positive, negative):
    """Two kernels for the distances and one that adds the hinged differences in order."""
    fn = model.loss_fn
    rows = _distance(fn, anchor, positive) - _distance(fn, anchor, negative)
    total = torch.zeros(())
    for row in rows.unbind():
        total = total + torch.maximum(row + fn.margin, torch.zeros(()))
    return total * (1.0 / anchor.shape[0])


def wrong_squared_distances(model, anchor, positive, negative):
    """Leaves out the two square roots: wrong on the problem's own inputs."""
    fn = model.loss_fn
    rows = _distance(fn, anchor, positive) ** 2 - _distance(fn, anchor, negative) ** 2
    return (rows + fn.margin).clamp(min=0.0).mean()


def wrong_hinge_after_the_mean(model, anchor, positive, negative):
    """Averages before it cuts at zero: wrong on inputs of wide spread, where many rows are cut."""
    fn = model.loss_fn
    rows = _distance(fn, anchor, positive) - _distance(fn, anchor, negative)
    return (rows.mean() + fn.margin).clamp(min=0.0)
