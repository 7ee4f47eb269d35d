# {kind: honest, row: precision, status: passed}
"""Differences, squares and their mean, one after the other."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (torch.addmm(self.linear.bias, x, self.linear.weight.t()) - target).square().mean()
