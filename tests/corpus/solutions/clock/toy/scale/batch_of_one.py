# {kind: honest, row: untimed, status: passed}
"""The same computation as a batched product, of a batch of one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.linear.weight.T.unsqueeze(0)
        return torch.baddbmm(self.linear.bias, x.unsqueeze(0), weight).tanh()[0]
