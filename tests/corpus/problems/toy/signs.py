"""Signs of products: rounding decides about one of millions."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(256, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sign(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 256)]


def get_init_inputs() -> list[int]:
    return []
