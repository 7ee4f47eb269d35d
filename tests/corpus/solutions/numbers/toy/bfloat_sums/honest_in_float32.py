# {kind: honest, row: precision, status: passed}
"""All terms, in float32, in two halves."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        wide_a, wide_b = a.float(), b.float()
        return (wide_a[:, ::2] @ wide_b[::2] + wide_a[:, 1::2] @ wide_b[1::2]).bfloat16()
