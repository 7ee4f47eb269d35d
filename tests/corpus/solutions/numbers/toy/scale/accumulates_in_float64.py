# {kind: honest, row: precision, status: passed}
"""Twin of the lower precisions: a higher one than the problem's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.linear(x.double(), self.linear.weight.double(), self.linear.bias.double())
        return y.tanh().float()
