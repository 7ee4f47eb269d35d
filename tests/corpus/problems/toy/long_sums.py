"""Sums so long that an honest one may err by as much as a small factor does."""

import torch
from torch import nn

size = 32
length = 4096


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(size, length), torch.rand(length, size)]


def get_init_inputs() -> list[int]:
    return []
