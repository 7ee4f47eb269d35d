# {kind: honest, row: constants, status: passed}
"""Both layers in one product."""

import copy

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int, rates: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = copy.deepcopy(self.first)
        self.turn = nn.Parameter(torch.eye(features))
        self.rate = nn.Parameter(torch.log(torch.arange(1.0, rates + 1)).repeat(features, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.cat((self.first.weight, self.second.weight))
        first, second = (x @ weight.T + torch.cat((self.first.bias, self.second.bias))).chunk(2, 1)
        y = torch.tanh(first) + torch.relu(second)
        return (y @ self.turn) * torch.exp(-torch.exp(self.rate)).sum(1)
