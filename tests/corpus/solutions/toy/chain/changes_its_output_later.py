"""Row: late completion. A thread writes over the returned tensor after the call: too late to matter on either side."""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.compute(x)
        threading.Timer(0.2, y.zero_).start()
        return y

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x
