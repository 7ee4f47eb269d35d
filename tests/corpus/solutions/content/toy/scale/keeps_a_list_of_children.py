# {kind: fault, row: entry class, status: load_error, reason: not_a_module}
"""Names an attribute as a method is called by which every module is walked through."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.children = [self.linear]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for child in self.children:
            x = child(x)
        return torch.tanh(x)
