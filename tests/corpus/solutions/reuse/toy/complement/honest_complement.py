# {kind: honest, row: aliasing, status: passed}
"""Twin of the view of an input: its complement, written."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sub(-1, x)
