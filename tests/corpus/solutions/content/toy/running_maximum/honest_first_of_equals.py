# {kind: honest, row: form, status: passed}
"""The first of equal numbers, where PyTorch names the last; and its keys in another order."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        values = torch.cummax(x, dim=-1).values
        new = torch.ones_like(x, dtype=torch.bool)
        new[:, 1:] = values[:, 1:] > values[:, :-1]
        places = torch.where(new, torch.arange(x.shape[1], device=x.device), 0)
        return {"indices": places.cummax(dim=-1).values, "values": values}
