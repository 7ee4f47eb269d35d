# {kind: honest, row: aliasing, status: passed}
"""Twin of the changed input: works in place, on a copy of its input."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y = y @ self.linear.weight.T
        return y.add_(self.linear.bias).tanh_()
