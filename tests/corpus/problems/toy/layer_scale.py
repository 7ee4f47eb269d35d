"""A block beside its input, scaled down to nearly nothing, as such blocks begin."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.gamma * torch.relu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 96)]


def get_init_inputs() -> list[int]:
    return [96]
