# {kind: honest, row: late, status: passed}
"""The honest twin: works on another stream, and waits for it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            y = torch.tanh(self.linear(x))
        torch.cuda.current_stream().wait_stream(self.side)
        return y
