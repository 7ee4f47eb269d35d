"""Batch normalisation in train mode, as constructed: statistics of the batch, buffers that move."""

import torch
from torch import nn

batch = 64
features = 48


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, features)]


def get_init_inputs() -> list[int]:
    return [features]
