# {kind: honest, row: drawn inputs, status: passed}
"""All steps, each in one operation."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, new: torch.Tensor, enter: torch.Tensor, stay: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        added, stay = torch.tanh(new) * torch.sigmoid(enter), torch.sigmoid(stay)
        state = torch.zeros_like(new[:, 0])
        for step in range(new.shape[1]):
            state = torch.addcmul(added[:, step], stay[:, step], state)
        return torch.sigmoid(out[:, -1]) * state
