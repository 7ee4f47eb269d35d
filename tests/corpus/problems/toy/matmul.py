"""A matrix product: what is wrong about a fast one is mostly its precision."""

import torch
from torch import nn

size = 160


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs() -> list[int]:
    return []
