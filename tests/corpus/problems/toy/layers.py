"""Many layers, each of which halves what it is given: for the inputs that are drawn, the last biases are all."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 256)]


def get_init_inputs() -> list[int]:
    return [256, 16]
