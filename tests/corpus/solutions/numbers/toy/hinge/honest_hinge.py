# {kind: honest, row: precision, status: passed}
"""In another order: along rows first."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (1 - predictions * targets).clamp(min=0).mean(1).mean()
