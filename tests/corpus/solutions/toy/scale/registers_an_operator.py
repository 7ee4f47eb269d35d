"""Twin of the patched torch: an operator of its own in torch's library."""

import torch
from torch import nn


@torch.library.custom_op("corpus::tail", mutates_args=())
def tail(x: torch.Tensor) -> torch.Tensor:
    """A tanh."""
    return torch.tanh(x)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return tail(self.linear(x))
