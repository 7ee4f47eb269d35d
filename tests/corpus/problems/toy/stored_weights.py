"""A product with weights in half precision."""

import torch
from torch import nn

PRECISION = "bfloat16"


class Model(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 512)]


def get_init_inputs() -> list[int]:
    return [512, 256]
