# {kind: honest, row: form, status: passed}
"""Twin of the lazy outputs: builds what it needs in the first call."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.stages: nn.Sequential | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.stages is None:
            self.stages = nn.Sequential(self.linear, nn.Tanh())
        return self.stages(x)
