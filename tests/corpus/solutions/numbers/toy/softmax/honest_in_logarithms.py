# {kind: honest, row: drawn inputs, status: passed}
"""Twin of `no_maximum_subtracted`: through the logarithm of the sum."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.logsumexp(dim=-1, keepdim=True)).exp()
