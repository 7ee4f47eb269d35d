# {kind: honest, row: drawn inputs, status: passed}
"""Twin of the wrong one: a sum in float32 of all there is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.sum(dtype=torch.float32) / x.numel()).to(x.dtype)
