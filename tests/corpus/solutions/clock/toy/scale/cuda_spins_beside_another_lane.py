# {kind: cheat, row: slow baseline, status: passed, twin: cuda_beside_another_lane, set: {lanes: 2}}
"""Spins on the card for as long as it may take to enqueue a burst, while another lane's burst is to be alone there."""

import sys
import time

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")

SPIN_S = 0.4
# About two milliseconds, as long as a process may keep the card.
CYCLES = 4_000_000


def caller(name: str) -> dict:
    """The local variables of the nearest calling function that has one called `name`."""
    frame = sys._getframe(1)
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.side = torch.cuda.Stream()
        self.number = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        message = caller("channel")["message"]
        if message.number != self.number:
            self.number = message.number
            self.spin(SPIN_S if message.gated else 0.0)
        return torch.tanh(self.linear(x))

    def spin(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with torch.cuda.stream(self.side):
            while True:
                torch.cuda._sleep(CYCLES)
                self.side.synchronize()
                if time.monotonic() > until:
                    return
