"""A lower triangle of numbers above zero times a matrix of such: half of the factors are zero in every draw."""

import torch
from torch import nn

size = 96
columns = 64


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.tril(torch.rand(size, size)), torch.rand(size, columns)]


def get_init_inputs() -> list[int]:
    return []
