# {kind: fault, row: load, status: load_error, reason: "exception:TypeError", twin: honest}
"""Its constructor wants more than the problem gives."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int, more: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
