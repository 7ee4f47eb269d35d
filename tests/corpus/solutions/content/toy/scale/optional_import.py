# {kind: honest, row: load, status: passed}
"""Twin of the missing module: goes on without a package that is not there."""

import torch
from torch import nn

try:
    import a_package_that_nobody_has
except ImportError:
    a_package_that_nobody_has = None


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if a_package_that_nobody_has is not None:
            return a_package_that_nobody_has.tanh(x)
        return torch.tanh(self.linear(x))
