# {kind: fault, row: crash, status: crashed, twin: honest}
"""Closes all of its descriptors, its channel among them."""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.closerange(0, 4096)
        return torch.tanh(self.linear(x))
