# {kind: honest, row: form, status: passed}
"""Twin of the wrong shapes: a view of the middle of a larger, padded buffer."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        padded = torch.full((rows + 2, columns + 32), float("nan"), device=x.device)
        padded[1:-1, :columns] = torch.tanh(self.linear(x))
        return padded[1:-1, :columns]
