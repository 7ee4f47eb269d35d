"""Returns while another stream, held back until the gate is open, still computes."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        started = torch.cuda.Event()
        started.record()
        self.side.wait_event(started)
        with torch.cuda.stream(self.side):
            # Long enough that the judge looks before it is over.
            for _ in range(20):
                z = torch.tanh(self.linear(x))
            y.copy_(z)
        return y
