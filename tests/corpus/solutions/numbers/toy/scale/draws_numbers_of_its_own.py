# {kind: honest, row: random, status: passed}
"""Goes through the rows in a random order, which the reference does not; the answer is the same."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = torch.randperm(len(x), device=x.device)
        y = torch.empty_like(x)
        y[order] = torch.tanh(self.linear(x[order]))
        return y
