# {kind: honest, row: untimed, status: passed}
"""Twin of the expanded output: every copy is written."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).expand(16, -1, -1).contiguous()
