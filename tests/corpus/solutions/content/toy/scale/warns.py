# {kind: honest, row: exceptions, status: passed}
"""Twin of the exceptions: warns in every call."""

import warnings

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        warnings.warn("this is slow", stacklevel=1)
        return torch.tanh(self.linear(x))
