# {kind: honest, row: aliasing, status: passed}
"""Honest: copies in every call, into memory that lies as its input does."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone().t()
