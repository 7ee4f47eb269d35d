# {kind: fault, row: form, status: load_error, reason: "exception:RecursionError"}
"""A module that is one of its own parts, so that whoever goes through these never ends."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.add_module("whole", self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
