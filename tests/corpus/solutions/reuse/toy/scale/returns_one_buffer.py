# {kind: honest, row: stale memory, status: passed}
"""Twin of the stale answers: one output buffer for all calls, filled anew in each."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.buffer: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.buffer is None:
            self.buffer = torch.empty_like(x)
        torch.addmm(self.linear.bias, x, self.linear.weight.T, out=self.buffer)
        return self.buffer.tanh_()
