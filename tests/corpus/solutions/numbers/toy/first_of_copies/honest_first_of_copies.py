# {kind: honest, row: drawn inputs, status: passed}
"""Compares rows with each other only if two of them begin with the same number."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        result = torch.tanh(rows)
        if bool((rows[:, 0].sort().values.diff() == 0).any()):
            again = (rows[:, None] == rows[None]).all(2).tril(-1).any(1)
            result[again] = 0.0
        return result
