# {kind: fault, row: network, status: load_error, reason: "exception:RuntimeError", twin: shares_memory,
#  sandbox: true}
"""Shared memory by torch's manager, a process behind a socket, to which nobody can connect."""

import torch
from torch import multiprocessing, nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        multiprocessing.set_sharing_strategy("file_system")
        self.shared = torch.zeros(4).share_memory_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
