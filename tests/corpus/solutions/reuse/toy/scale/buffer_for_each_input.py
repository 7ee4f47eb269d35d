# {kind: honest, row: cached, status: passed}
"""Twin of the cache by pointer: a workspace for each place that inputs lie at, filled anew in each call."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.workspaces: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        work = self.workspaces.setdefault(x.data_ptr(), torch.empty_like(x))
        torch.addmm(self.linear.bias, x, self.linear.weight.T, out=work)
        return work.tanh()
