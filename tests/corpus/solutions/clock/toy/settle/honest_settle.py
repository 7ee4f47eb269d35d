# {kind: honest, row: late, status: passed}
"""The same steps, in time."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.amax(-1)
        for _ in range(self.steps):
            x -= 0.1 * x.sin()
        return largest
