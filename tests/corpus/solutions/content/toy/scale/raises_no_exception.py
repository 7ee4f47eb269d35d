# {kind: fault, row: exceptions, status: runtime_error, reason: "exception:KeyboardInterrupt", twin: honest}
"""Raises what `except Exception` does not see."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt
