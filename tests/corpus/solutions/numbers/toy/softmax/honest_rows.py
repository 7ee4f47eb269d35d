# {kind: honest, row: one tile, status: passed}
"""Twin of the wrong ones: maximum, exponentials, sum, quotient."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x - x.amax(dim=-1, keepdim=True)).exp_()
        return y.div_(y.sum(dim=-1, keepdim=True))
