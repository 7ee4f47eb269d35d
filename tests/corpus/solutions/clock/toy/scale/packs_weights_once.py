# {kind: honest, row: untimed, status: passed}
"""Twin of the caches: packs its weights in the first call, and computes every answer."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.packed: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is None:
            self.packed = self.linear.weight.T.contiguous()
        return torch.addmm(self.linear.bias, x, self.packed).tanh_()
