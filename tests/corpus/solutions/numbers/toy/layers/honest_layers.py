# {kind: honest, row: precision, status: passed}
"""All of them in float32, each as one operator."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.addmm(layer.bias, x, layer.weight.t()).clamp_min_(0)
        return x
