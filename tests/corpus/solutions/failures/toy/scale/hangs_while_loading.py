# {kind: fault, row: hang, status: timeout, reason: load, twin: honest}
"""Its module waits for a thread that waits for its module."""

import threading

import torch
from torch import nn

lock = threading.Lock()
lock.acquire()
lock.acquire()


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
