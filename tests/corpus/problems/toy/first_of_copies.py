"""A layer for sets: what repeats an earlier row is zero, and counts for nothing."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        equal = (rows[:, None] == rows[None]).all(2)
        again = equal.tril(-1).any(1)
        return torch.tanh(rows).masked_fill(again[:, None], 0.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 16)]


def get_init_inputs() -> list[int]:
    return []
