"""The mean of millions of numbers that are spread evenly: in 16 bits each part of them has the same."""

import torch
from torch import nn

PRECISION = "bfloat16"


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean()


def get_inputs() -> list[torch.Tensor]:
    return [0.5 + 0.5 * torch.rand(2048, 1024)]


def get_init_inputs() -> list[int]:
    return []
