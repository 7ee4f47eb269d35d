# {kind: honest, row: drawn inputs, status: passed}
"""Of scores that are equal in half precision the last ones, where PyTorch takes any."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, closed: torch.Tensor) -> torch.Tensor:
        scores = (x @ weight).masked_fill(closed, -float("inf"))
        places = scores.flip(1).sort(dim=1, descending=True, stable=True).indices
        return scores.shape[1] - 1 - places[:, :4]
