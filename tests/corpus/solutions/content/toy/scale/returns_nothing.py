# {kind: cheat, row: form, status: incorrect, reason: not_a_tensor, twin: honest}
"""A wrapper without a return."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.linear(x).tanh()
