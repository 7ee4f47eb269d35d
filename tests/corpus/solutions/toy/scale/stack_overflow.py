"""Row: faults, segfault. C recursion without end: two lists nested 200 000 deep, compared."""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one: list = []
        other: list = []
        for _ in range(200_000):
            one, other = [one], [other]
        sys.setrecursionlimit(10**9)
        return one == other
