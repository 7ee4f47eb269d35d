# {kind: honest, row: precision, status: passed}
"""Twin of the lower precisions: the sum in three parts, last part first."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = zip(x.split(32, dim=1), self.linear.weight.split(32, dim=1), strict=True)
        y = sum(part @ weight.T for part, weight in reversed(list(parts)))
        return torch.tanh(y + self.linear.bias)
