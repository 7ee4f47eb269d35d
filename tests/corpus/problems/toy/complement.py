"""The complement of each bit: what inputs used to be while outputs are read."""

import torch
from torch import nn

size = 512


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bitwise_not(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(-(2**31), 2**31 - 1, (size, size), dtype=torch.int32)]


def get_init_inputs() -> list[int]:
    return []
