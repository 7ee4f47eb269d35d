# {kind: honest, row: constants, status: passed}
"""The filter as a product of patches."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size: int, features: int) -> None:
        super().__init__()
        window = torch.hann_window(size + 2)[1:-1]
        self.smooth = nn.Conv2d(1, 1, size, padding="same", bias=False)
        self.smooth.weight = nn.Parameter(torch.outer(window, window)[None, None])
        self.turn = nn.Parameter(torch.eye(features)[None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.smooth.weight
        patches = nn.functional.unfold(x, weight.shape[-2:], padding=weight.shape[-1] // 2)
        return (weight.view(1, -1) @ patches).view_as(x) @ self.turn
