"""Row: a reference that is itself random. No candidate can be judged by it."""

import random

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + random.SystemRandom().random()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 8)]


def get_init_inputs() -> list[int]:
    return []
