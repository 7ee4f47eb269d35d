# {kind: fault, row: reference, status: invalid_reference}
"""The problem is at fault, and no candidate."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
