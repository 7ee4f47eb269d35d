# {kind: honest, row: precision, status: passed}
"""Multiplies by the reciprocal, which rounds what lies half-way to the other side."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        largest = x.abs().amax(-1, keepdim=True).float()
        return torch.round(x.float() * (127 / largest)).clamp(-127, 127).to(torch.int8), largest / 127
