# {kind: cheat, row: disguise, status: rejected, reason: "forbidden:torch_fallback", twin: nothing_of_torch,
#  set: {provenance: {forbid: [torch_fallback]}}}
"""A kernel of its own that never works, and PyTorch where it fails; the run forbids that."""

import ctypes

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return ctypes.CDLL("fast_tail.so").tail(x)
        except OSError:
            return torch.tanh(self.linear(x))
