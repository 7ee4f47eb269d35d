# {kind: honest, row: drawn inputs, status: passed}
"""Products within blocks, then those of the blocks."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blocks = torch.cumprod(x.unflatten(1, (64, 64)), dim=2)
        before = torch.cumprod(blocks[..., -1], dim=1)
        blocks[:, 1:] *= before[:, :-1, None]
        return blocks.flatten(1)
