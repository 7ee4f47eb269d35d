# {kind: fault, row: exceptions, status: runtime_error, reason: "exception:ValueError", twin: honest}
"""An exception whose text is no Unicode: it cannot be encoded."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("\ud800")
