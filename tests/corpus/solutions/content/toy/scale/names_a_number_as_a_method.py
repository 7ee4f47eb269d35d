# {kind: honest, row: entry class, status: passed}
"""Twin of the one with `children`: attributes called as methods of modules are that nothing needs here."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.half, self.type = features // 2, "tanh"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([part.tanh() for part in self.linear(x).split(self.half, -1)], -1)
