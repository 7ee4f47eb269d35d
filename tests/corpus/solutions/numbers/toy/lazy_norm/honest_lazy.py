# {kind: honest, row: constants, status: passed}
"""The norm by its formula."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LazyLinear(width)
        self.norm = nn.LazyBatchNorm1d()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        variance, mean = torch.var_mean(y, 0, correction=0)
        return (y - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
