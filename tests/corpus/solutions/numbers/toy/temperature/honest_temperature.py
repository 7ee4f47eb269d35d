# {kind: honest, row: drawn inputs, status: passed}
"""By the temperature's reciprocal, and through a logarithm."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, temperature: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(torch.log_softmax(x * (1 / temperature), -1))
