# {kind: honest, row: form, status: passed}
"""Twin of the wrong layouts: right values and shape, other strides."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.addmm(self.linear.bias[:, None], self.linear.weight, x.T)
        return y.tanh_().T
