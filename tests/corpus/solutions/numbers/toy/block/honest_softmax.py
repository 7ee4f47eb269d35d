# {kind: honest, row: drawn inputs, status: passed}
"""Scores, softmax, and a sum over keys, one after the other."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = (q @ k.transpose(-1, -2)).float() / q.shape[-1] ** 0.5
        return x + self.proj(scores.softmax(-1).to(v.dtype) @ v)
