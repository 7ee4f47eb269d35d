# {kind: honest, row: drawn inputs, status: passed}
"""The largest eight of each of 64 strands of a row, and of those the largest: no more than eight are in any."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.unflatten(1, (-1, 64)).topk(8, dim=1).values.flatten(1).topk(8, dim=1).values
