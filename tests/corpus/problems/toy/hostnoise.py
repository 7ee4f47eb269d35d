"""A gate of random numbers of the host's generator, as in modules that were written for the CPU."""

import torch
from torch import nn

rows = 64
columns = 2048
noise = 64


class Model(nn.Module):
    def __init__(self, columns: int, noise: int) -> None:
        super().__init__()
        self.noise = noise
        self.widen = nn.Linear(noise, columns)
        self.mix = nn.Linear(columns, columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(self.noise).to(device=x.device, dtype=x.dtype, non_blocking=True)
        return x * torch.sigmoid(self.mix(torch.relu(self.widen(drawn))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return [columns, noise]
