# {kind: honest, row: drawn inputs, status: passed}
"""The logarithm's own small part."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, log_deviation, scale = self.linear(x).chunk(3, -1)
        return mean, torch.exp(log_deviation), scale.clamp_min(0) + torch.log1p(torch.exp(-scale.abs()))
