"""Mean of the rows of each segment, given by an index a row; segments without rows are zero."""

import torch
from torch import nn

SEGMENTS = 41


class Model(nn.Module):
    def forward(self, x, index):
        total = torch.zeros(SEGMENTS, x.shape[1], dtype=x.dtype, device=x.device).index_add(0, index, x)
        count = torch.bincount(index, minlength=SEGMENTS).clamp(min=1)
        return total / count[:, None]


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(997, 23), torch.randint(0, SEGMENTS, (997,))]


def honest_sorted_by_segment(model, x, index):
    """Sorts rows by segment and adds each segment up from its end."""
    out = torch.zeros(SEGMENTS, x.shape[1])
    for segment in range(SEGMENTS):
        rows = (index == segment).nonzero().flatten().flip(0)
        total = torch.zeros(x.shape[1])
        for row in rows:
            total = total + x[row]
        out[segment] = total / max(1, rows.numel())
    return out


def honest_one_hot_product(model, x, index):
    """A product with a matrix of one over the counts."""
    hot = (torch.arange(SEGMENTS)[:, None] == index).float()
    return (hot / hot.sum(1, keepdim=True).clamp(min=1)) @ x


def wrong_atomics_lose_rows(model, x, index):
    """Adds without atomics, so that of the rows of a segment the last one stays: wrong on the problem's own inputs."""
    out = torch.zeros(SEGMENTS, x.shape[1])
    for row, segment in enumerate(index.tolist()):
        out[segment] = x[row]
    return out / torch.bincount(index, minlength=SEGMENTS).clamp(min=1)[:, None]


def wrong_average_count(model, x, index):
    """Divides by the average number of rows: wrong on the problem's own inputs."""
    return torch.zeros(SEGMENTS, x.shape[1]).index_add(0, index, x) / (x.shape[0] / SEGMENTS)
