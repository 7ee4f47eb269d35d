"""A memory that is written by hand, four inputs of one size: what is drawn, it forgets within forty steps."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, new: torch.Tensor, enter: torch.Tensor, stay: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        added, stay = torch.tanh(new) * torch.sigmoid(enter), torch.sigmoid(stay)
        state = torch.zeros_like(new[:, 0])
        for step in range(new.shape[1]):
            state = stay[:, step] * state + added[:, step]
        return torch.sigmoid(out[:, -1]) * state


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 160, 32) for _ in range(4)]


def get_init_inputs() -> list[int]:
    return []
