# {kind: honest, row: patching, status: passed}
"""Twin of the patched torch: the tail through TorchScript."""

import torch
from torch import nn


@torch.jit.script
def tail(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return tail(self.linear(x))
