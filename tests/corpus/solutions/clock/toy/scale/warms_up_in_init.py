# {kind: honest, row: untimed, status: passed}
"""Twin of the work outside the timed region: a few calls on inputs of its own while it is constructed."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        for _ in range(3):
            self.forward(torch.zeros(4, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
