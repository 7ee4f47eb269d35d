# {kind: honest, row: constants, status: passed}
"""Both heads in one product."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int, rank: int, classes: int) -> None:
        super().__init__()
        self.mix = nn.Linear(features, features, bias=False)
        self.first = nn.Parameter(torch.randn(features, 2 * classes))
        self.second = nn.Parameter(torch.randn(features, 2 * classes))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.tanh(self.mix(x)) @ torch.cat([self.first, self.second], 1)
        first, second = both.chunk(2, 1)
        return first.contiguous(), second.contiguous()
