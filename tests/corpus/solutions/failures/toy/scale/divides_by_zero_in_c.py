# {kind: fault, row: crash, status: crashed, reason: "signal:SIGFPE", twin: honest}
"""The signal of a division by zero, sent to itself."""

import signal

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        signal.raise_signal(signal.SIGFPE)
        return x
