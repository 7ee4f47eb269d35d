# {kind: honest, row: late, status: passed}
"""Twin of the copies in one long system call: two copies."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        out[1:] = x[:-1]
        out[:1] = x[-1:]
        return out
