# {kind: honest, row: drawn inputs, status: passed}
"""Never reads what stands above the diagonal: get_inputs promises zeros there."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.tril(a) @ b)
