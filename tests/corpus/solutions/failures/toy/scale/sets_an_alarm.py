# {kind: fault, row: crash, status: crashed, reason: "signal:SIGALRM", twin: honest}
"""An alarm that nobody handles goes off in the middle of a call."""

import signal
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        time.sleep(1.0)
        return torch.tanh(self.linear(x))
