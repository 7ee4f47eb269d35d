# {kind: fault, row: exceptions, status: runtime_error, reason: "exception:Unspeakable", twin: honest}
"""An exception whose text raises another one."""

import torch
from torch import nn


class Unspeakable(Exception):
    """Fails wherever somebody looks at it."""

    def __str__(self) -> str:
        raise self

    __repr__ = __str__


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Unspeakable
