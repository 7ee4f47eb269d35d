# {kind: honest, row: late, status: passed}
"""Twin of the margins that two calls share: each call writes both of its own."""

import torch
from torch import nn

MARGIN = 224


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(len(x) + 2 * MARGIN, x.shape[1], device=x.device)
        out[:MARGIN].zero_()
        out[MARGIN:-MARGIN] = x
        out[-MARGIN:].zero_()
        return out
