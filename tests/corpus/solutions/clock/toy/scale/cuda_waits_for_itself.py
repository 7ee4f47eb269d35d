# {kind: honest, row: untimed, status: passed, warning: ungated}
"""Right, and it synchronises in every call, so that it cannot be enqueued behind a gate."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.linear(x))
        torch.cuda.synchronize()
        return y
