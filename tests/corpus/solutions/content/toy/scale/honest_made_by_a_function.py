# {kind: honest, row: entry class, status: passed}
"""Calling it gives a module, though it is no class itself."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


def ModelNew(features: int) -> nn.Module:
    return Scale(features)
