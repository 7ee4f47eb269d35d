# {kind: honest, row: disguise, status: passed}
"""The same computation, written differently."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.linear.weight.T + self.linear.bias).tanh()
