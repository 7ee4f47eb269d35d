# {kind: fault, row: hang, status: timeout, reason: call, twin: honest}
"""SIGSTOP to itself."""

import os
import signal

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGSTOP)
        return torch.tanh(self.linear(x))
