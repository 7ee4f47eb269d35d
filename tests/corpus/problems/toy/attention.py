"""Attention small enough for the corpus: what is special about it is that its output hardly varies."""

import torch
from torch import nn

heads = 2
sequence = 64
depth = 16


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(heads, sequence, depth) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
