# {kind: fault, row: build, status: timeout, reason: compile, twin: honest, set: {build: {timeout_s: 8.0}}}
"""It goes on until its time is over; the log does not."""

import os

import torch
from torch import nn
from torch.utils import cpp_extension  # noqa: F401

while "TORCH_EXTENSIONS_DIR" in os.environ:
    print("x" * 999_999)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
