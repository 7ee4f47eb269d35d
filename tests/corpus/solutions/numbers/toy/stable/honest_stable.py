# {kind: honest, row: drawn inputs, status: passed}
"""Keys made different by their places: any order of those is the stable one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        return (keys * keys.shape[-1] + torch.arange(keys.shape[-1], device=keys.device)).argsort(dim=-1)
