# {kind: honest, row: drawn inputs, status: passed}
"""All four from one sum and the squares of what is left."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.sum(1)
        mean = total / 1024
        return torch.stack([total, mean, (x - mean[:, None]).square().sum(1) / 1023, x.max(1).values], 1)
