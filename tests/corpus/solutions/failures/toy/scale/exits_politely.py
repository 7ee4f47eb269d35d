# {kind: fault, row: crash, status: crashed, reason: "exit:0", twin: honest}
"""The same with sys.exit, which is an exception."""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(0)
