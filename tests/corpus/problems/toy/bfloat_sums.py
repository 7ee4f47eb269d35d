"""Sums of positive numbers in bfloat16, whose rounding is nearly as large as what each element is by itself."""

import torch
from torch import nn

PRECISION = "bfloat16"

size = 128
length = 2048


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(size, length), torch.rand(length, size)]


def get_init_inputs() -> list[int]:
    return []
