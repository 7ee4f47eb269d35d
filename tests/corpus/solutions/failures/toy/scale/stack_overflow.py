# {kind: fault, row: crash, status: crashed, reason: "signal:SIGSEGV", twin: honest}
"""Recursion without end in C, where no interpreter counts it: a million brackets for regcomp."""

import ctypes

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        extended = 1
        return x * ctypes.CDLL(None).regcomp(ctypes.create_string_buffer(1024), b"(" * 1_000_000, extended)
