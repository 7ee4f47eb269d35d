"""A large matrix of which all rows but the last are copied: four elements of four millions take most of the time."""

import itertools

import torch
from torch import nn

rows = 1 << 20
columns = 4
hidden = 256
depth = 8


class Model(nn.Module):
    def __init__(self, columns: int, hidden: int, depth: int) -> None:
        super().__init__()
        widths = [columns, *[hidden] * depth, columns]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = x[-1]
        for layer in self.layers:
            last = torch.tanh(layer(last))
        return torch.cat([x[:-1], last[None]])


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return [columns, hidden, depth]
