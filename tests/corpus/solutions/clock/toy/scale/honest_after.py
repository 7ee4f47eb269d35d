# {kind: honest, row: disguise, status: passed}
"""Comes last in the alphabet of most faults: it passes if they left nothing behind."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.linear.weight, self.linear.bias).tanh_()
