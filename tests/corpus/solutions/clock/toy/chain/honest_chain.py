# {kind: honest, row: late, status: passed}
"""Twin of those that cheat on time: the layers, one after the other."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.addmm(layer.bias, x, layer.weight.T).tanh_()
        return x
