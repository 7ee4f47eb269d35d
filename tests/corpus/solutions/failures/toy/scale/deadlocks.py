# {kind: fault, row: hang, status: timeout, reason: call, twin: honest}
"""Takes a lock twice."""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lock = threading.Lock()
        with lock, lock:
            return x
