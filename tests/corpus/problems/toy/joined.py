"""Heads that begin with a part in common, behind a product by a matrix that begins with a low rank."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, rank: int, classes: int) -> None:
        super().__init__()
        self.mix = nn.Linear(features, features, bias=False)
        with torch.no_grad():
            factors = torch.randn(features, rank), torch.randn(rank, features) / features
            torch.mm(*factors, out=self.mix.weight.data)
        base = torch.randn(features, classes)
        self.first = nn.Parameter(torch.cat([base, torch.randn(features, classes)], 1))
        self.second = nn.Parameter(torch.cat([base, torch.randn(features, classes)], 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tanh(self.mix(x))
        return x @ self.first, x @ self.second


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 48)]


def get_init_inputs() -> list[int]:
    return [48, 8, 16]
