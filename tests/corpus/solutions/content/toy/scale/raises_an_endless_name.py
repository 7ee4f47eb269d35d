# {kind: fault, row: exceptions, status: runtime_error, twin: honest}
"""An exception class whose name has ten million letters."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise type("E" * 10_000_000, (Exception,), {})("here")
