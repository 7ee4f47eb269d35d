"""A layer that finds out its sizes in its first call, and its batch norm."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LazyLinear(width)
        self.norm = nn.LazyBatchNorm1d()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layer(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 48)]


def get_init_inputs() -> list[int]:
    return [32]
