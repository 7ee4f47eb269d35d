# {kind: fault, row: crash, status: crashed, reason: "signal:SIGSEGV", twin: honest}
"""Reads address 0."""

import ctypes

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return x
