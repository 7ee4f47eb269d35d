"""Two layers that begin as one, a product that begins as an identity, and rates that begin alike in each channel."""

import copy

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, rates: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = copy.deepcopy(self.first)
        self.turn = nn.Parameter(torch.eye(features))
        self.rate = nn.Parameter(torch.log(torch.arange(1.0, rates + 1)).repeat(features, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.first(x)) + torch.relu(self.second(x))
        decays = torch.exp(-torch.exp(self.rate))
        return (y @ self.turn) * decays.sum(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 96)]


def get_init_inputs() -> list[int]:
    return [96, 8]
