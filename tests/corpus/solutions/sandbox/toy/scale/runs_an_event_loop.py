# {kind: honest, row: network, status: passed}
"""Twin of the network: an event loop of its own, which makes a pair of sockets."""

import asyncio

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.loop = asyncio.new_event_loop()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        async def work() -> torch.Tensor:
            await asyncio.sleep(0)
            return torch.tanh(self.linear(x))

        return self.loop.run_until_complete(work())
