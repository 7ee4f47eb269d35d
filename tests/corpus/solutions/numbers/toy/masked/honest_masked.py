# {kind: honest, row: drawn inputs, status: passed}
"""Maximum, exponentials, sum, quotient; NaN where nothing is left."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x.masked_fill(mask, -torch.inf)
        y = (x - x.amax(dim=-1, keepdim=True)).exp_()
        return y.div_(y.sum(dim=-1, keepdim=True))
