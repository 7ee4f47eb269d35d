# {kind: honest, row: random, status: passed}
"""Twin of `own_randomness`: drops first, and the rest of the work afterwards, on the same random numbers."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(nn.functional.dropout(x, p=0.25, training=True))
