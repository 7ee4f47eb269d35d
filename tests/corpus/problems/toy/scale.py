"""A problem small enough that a test spends its time on the harness, not on it."""

import torch
from torch import nn

rows = 64
columns = 96
elements = rows * columns

VARIANTS = {"wide": {"columns": 200}}


class Model(nn.Module):
    """A linear layer and a tanh."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return [columns]
