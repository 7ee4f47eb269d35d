"""A few places moved through a large table, step by step: each step waits for memory, and a cache is all that helps."""

import torch
from torch import nn

rows = 48
entries = 1 << 21
steps = 64


class Model(nn.Module):
    def __init__(self, entries: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.register_buffer("table", torch.randperm(entries))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        for _ in range(self.steps):
            places = self.table[places]
        return places


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, entries, (rows,))]


def get_init_inputs() -> list[int]:
    return [entries, steps]
