# {kind: fault, row: crash, status: crashed, reason: "signal:SIGABRT", twin: honest}
"""Calls abort."""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.abort()
