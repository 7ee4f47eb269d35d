# {kind: honest, row: exceptions, status: passed}
"""Twin of the exceptions: tries a way that fails, and takes another."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return torch.ops.no_such_library.tanh(x)
        except (AttributeError, RuntimeError):
            return torch.tanh(self.linear(x))
