# {kind: honest, row: late, status: passed}
"""The same steps, and one that is written among zeros."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        votes = torch.zeros(x.numel(), dtype=torch.int64, device=x.device)
        for _ in range(self.steps):
            x = x + 0.1 * x.sin()
        return votes.scatter_(0, x.flatten().argmax()[None], 1)
