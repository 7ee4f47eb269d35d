"""A hinge loss: one number, a mean over a million and a half of others."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1536, 1024), torch.randint(0, 2, (1536, 1)).float() * 2 - 1]


def get_init_inputs() -> list[int]:
    return []
