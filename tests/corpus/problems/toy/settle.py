"""Lets its input settle, in place, and returns the largest number of each row as it was."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.amax(-1)
        for _ in range(self.steps):
            x.sub_(torch.sin(x), alpha=0.1)
        return largest


def get_inputs() -> list:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list:
    return [12]
