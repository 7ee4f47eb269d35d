# {kind: honest, row: hang, status: passed}
"""Twin of the deadlocks: its first call takes a second, as a compiler would."""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.ready = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            time.sleep(1.0)
            self.ready = True
        return torch.tanh(self.linear(x))
