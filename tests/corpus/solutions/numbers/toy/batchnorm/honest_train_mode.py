# {kind: honest, row: train or eval, status: passed}
"""Twin of `eval_mode`: the batch's statistics by hand, and no running ones kept."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        variance, mean = torch.var_mean(y, dim=0, unbiased=False)
        return (y - mean) * (variance + self.norm.eps).rsqrt() * self.norm.weight + self.norm.bias
