# {kind: honest, row: precision, status: passed}
"""Two shorter sums, added."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2]
