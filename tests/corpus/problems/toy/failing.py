"""Row: a reference that fails. No candidate can be judged by it."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("not implemented yet")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 8)]


def get_init_inputs() -> list[int]:
    return []
