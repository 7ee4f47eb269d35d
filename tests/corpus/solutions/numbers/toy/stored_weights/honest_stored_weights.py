# {kind: honest, row: precision, status: passed}
"""Products in float32, rounded once."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = x.float() @ self.linear.weight.float().T + self.linear.bias.float()
        return product.to(x.dtype)
