# {kind: fault, row: hang, status: timeout, reason: call, twin: honest}
"""Works, until the tenth call never ends."""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls >= 10:
            threading.Event().wait()
        return torch.tanh(self.linear(x))
