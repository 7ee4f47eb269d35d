# {kind: honest, row: random, status: passed}
"""Twin of `cuda_gates_before`."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns: int, noise: int) -> None:
        super().__init__()
        self.noise = noise
        self.widen = nn.Linear(noise, columns)
        self.mix = nn.Linear(columns, columns)

    def gate(self, x: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(self.noise).to(device=x.device, dtype=x.dtype, non_blocking=True)
        return torch.sigmoid(self.mix(torch.relu(self.widen(drawn))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(x) * x
