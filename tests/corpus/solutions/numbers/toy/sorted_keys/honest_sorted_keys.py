# {kind: honest, row: precision, status: passed}
"""Sorted as integers of the same order: all bits of a negative number but its sign are the other way round."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        bits = keys.view(torch.int32)
        bits = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).sort(dim=-1).values
        return torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).view(torch.float32)
