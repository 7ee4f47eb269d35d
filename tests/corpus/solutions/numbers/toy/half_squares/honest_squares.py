# {kind: honest, row: drawn inputs, status: passed}
"""The same with the sum of squares divided last."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return (y / torch.sqrt((y * y).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)).to(x.dtype)
