"""A softmax of masked rows: nothing is left of one of them, which is NaN."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(mask, -torch.inf).softmax(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 200), torch.rand(64, 200) < torch.where(torch.arange(64) == 3, 2.0, 0.3)[:, None]]


def get_init_inputs() -> list[int]:
    return []
