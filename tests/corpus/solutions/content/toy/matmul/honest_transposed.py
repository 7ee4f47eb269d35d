# {kind: honest, row: form, status: passed}
"""Twin of the wrong layouts: the transposed product of the transposed factors, as a view."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (b.T @ a.T).T
