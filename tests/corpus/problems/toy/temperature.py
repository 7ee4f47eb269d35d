"""A softmax whose temperature is the first input, and far smaller than the second."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, temperature: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / temperature, -1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 1) + 0.5, torch.randn(64, 512)]


def get_init_inputs() -> list[int]:
    return []
