# {kind: honest, row: constants, status: passed}
"""All of the block, with one operator for scale and sum."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(x, self.gamma, torch.relu(self.linear(x)))
