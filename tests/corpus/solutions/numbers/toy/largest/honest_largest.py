# {kind: honest, row: drawn inputs, status: passed}
"""The beginning of the sorted row."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = x.sort(dim=1, descending=True)
        return values[:, :8].contiguous(), places[:, :8].contiguous()
