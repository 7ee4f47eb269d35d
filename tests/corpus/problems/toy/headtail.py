"""Two outputs, of which one may be a view of the input and the other may not."""

import torch
from torch import nn

rows = 256
columns = 96


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:1], x[1:].clone()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return []
