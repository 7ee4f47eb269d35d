"""Row: faults, segfault. C recursion without end: two lists nested 200 000 deep, compared."""

import ctypes
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.setrecursionlimit(10**9)
        callback = ctypes.CFUNCTYPE(ctypes.c_int)
        # Each turn goes through C, which Python's own limit does not count.
        deeper = callback(lambda: deeper())
        return x * deeper()
