"""A few elements of the output, at random places, are so large that nothing is seen of the others beside them."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.abs() > 2, 1e9 * x, torch.sigmoid(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 1024)]


def get_init_inputs() -> list[int]:
    return []
