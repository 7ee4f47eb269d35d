"""A step's modulation: how much each column counts hangs on the time alone, which is a number and no tensor."""

import torch
from torch import nn

rows = 64
columns = 1024
hidden = 2048


class Model(nn.Module):
    def __init__(self, columns: int, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(columns, hidden)
        self.narrow = nn.Linear(hidden, columns)

    def forward(self, x: torch.Tensor, time: float) -> torch.Tensor:
        steps = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        return x * self.narrow(torch.relu(self.widen(torch.cos(steps * time))))


def get_inputs() -> list[object]:
    return [torch.randn(rows, columns), float(torch.rand(()))]


def get_init_inputs() -> list[int]:
    return [columns, hidden]
