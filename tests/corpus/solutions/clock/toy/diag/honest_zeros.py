# {kind: honest, row: untimed, status: passed}
"""Twin of the outputs that are cleared before the clock: zeros, then the diagonals."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(*x.shape, x.shape[1], device=x.device, dtype=x.dtype)
        torch.diagonal(out, dim1=-2, dim2=-1).copy_(x)
        return out
