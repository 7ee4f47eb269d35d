# {kind: fault, row: resources, status: out_of_memory, reason: out_of_memory, twin: honest}
"""Asks for a petabyte."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.empty(1 << 48).sum()
