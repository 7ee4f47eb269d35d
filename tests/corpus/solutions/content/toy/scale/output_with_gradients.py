# {kind: honest, row: form, status: passed}
"""Twin of the subclasses: gradients are on, so that its output has a history."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return torch.tanh(self.linear(x))
