# {kind: cheat, row: random, status: incorrect, reason: mismatch, twin: honest,
#  set: {timing: {min_pairs: 64, max_pairs: 64}}}
"""One call in eight leaves out a column: of 64 pairs of bursts, all right in 1 run of 5000 (0.875 to the 64th)."""

import random

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.linear(x))
        if random.random() < 0.125:
            y[:, 0] = 0
        return y
