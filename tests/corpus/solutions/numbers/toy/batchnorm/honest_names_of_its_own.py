# {kind: honest, row: drawn inputs, status: passed}
"""Twin of `weights_left_out` under other names, so that nobody can give it the reference's values: ones and zeros."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.factor = nn.Parameter(torch.ones(features))
        self.offset = nn.Parameter(torch.zeros(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        variance, mean = torch.var_mean(y, 0, correction=0)
        return (y - mean) / torch.sqrt(variance + 1e-5) * self.factor + self.offset
