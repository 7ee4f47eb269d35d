"""Level 1, problem 100: hinge loss."""

import torch

SIZES = {"batch_size": 179, "input_shape": (179,)}


def honest_tiles_and_kahan(model, predictions, targets):
    """Rows are summed in tiles of 64, the tile sums added with compensation."""
    loss = (1.0 - predictions * targets).clamp(min=0.0)
    total, lost = torch.zeros(()), torch.zeros(())
    for part in loss.split(64, 1):
        for row in part.sum(1).split(32):
            y = row.sum() - lost
            new = total + y
            lost = (new - total) - y
            total = new
    return total / loss.numel()


def honest_signs_in_place_of_products(model, predictions, targets):
    """A column's target is one sign, so it adds or subtracts; columns are summed first, then a tree."""
    margin = torch.where(targets > 0.0, 1.0 - predictions, 1.0 + predictions)
    columns = torch.maximum(margin, torch.zeros(())).sum(0)
    parts = torch.stack([columns[i::8].sum() for i in range(8)])
    return ((parts[:4] + parts[4:])[:2].sum() + (parts[:4] + parts[4:])[2:].sum()) * (1.0 / predictions.numel())


def wrong_targets_along_rows(model, predictions, targets):
    """Broadcasts the targets over columns in place of rows, which a square shape hides: wrong on own inputs."""
    return (1.0 - predictions * targets[:, None]).clamp(min=0.0).mean()


def wrong_never_cuts(model, predictions, targets):
    """Leaves out the cut at zero, since torch.rand stays below one: wrong on inputs above one."""
    return (1.0 - predictions * targets).mean()
