# {kind: fault, row: exceptions, status: runtime_error, reason: "exception:ValueError", twin: honest}
"""An exception caused by an exception caused by ... two thousand times."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        error = ValueError("the first")
        for number in range(2000):
            later = ValueError(f"number {number}")
            later.__cause__ = error
            error = later
        raise error
