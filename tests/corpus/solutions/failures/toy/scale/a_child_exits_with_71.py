# {kind: honest, row: crash, status: passed}
"""Twin of the one that exits: only a program that it asks ends with that code."""

import subprocess
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.code = subprocess.run([sys.executable, "-c", "raise SystemExit(71)"], check=False).returncode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
