"""A large output that is zero but for its diagonals."""

import torch
from torch import nn

rows = 8
columns = 256


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diag_embed(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return []
