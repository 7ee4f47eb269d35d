"""A layer and its mean squared error: one number, an average over a quarter of a million products."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(self.linear(x), target)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 512), torch.randn(512, 512)]


def get_init_inputs() -> list[int]:
    return [512]
