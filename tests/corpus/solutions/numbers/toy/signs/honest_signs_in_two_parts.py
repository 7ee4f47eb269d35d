# {kind: honest, row: precision, status: passed}
"""The same sums in two parts: a few signs of many million are other ones."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(256, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.linear.weight
        return torch.sign(x[:, :128] @ weight[:, :128].t() + (x[:, 128:] @ weight[:, 128:].t() + self.linear.bias))
