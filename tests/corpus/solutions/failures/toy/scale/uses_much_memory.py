# {kind: honest, row: resources, status: passed}
"""Twin of those that take all memory: a workspace of 100 MB."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.workspace = torch.zeros(25_000_000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.workspace[: x.numel()] = x.flatten()
        return torch.tanh(self.linear(x))
