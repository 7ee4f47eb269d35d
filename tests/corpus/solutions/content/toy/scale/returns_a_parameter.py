# {kind: honest, row: form, status: passed}
"""Twin of the subclasses: an output that is a `Parameter`, as some modules wrap everything."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.Parameter(torch.tanh(self.linear(x)), requires_grad=False)
