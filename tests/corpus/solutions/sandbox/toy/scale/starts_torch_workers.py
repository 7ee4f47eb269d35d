# {kind: honest, row: processes, status: passed}
"""Starts torch's workers: each asks the kernel to end it with its parent, and stops where that is refused."""

import torch
from torch import multiprocessing, nn


def work(rank: int, shared: torch.Tensor) -> None:
    shared[rank] = rank + 1


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        shared = torch.zeros(2).share_memory_()
        multiprocessing.start_processes(work, args=(shared,), nprocs=2, start_method="fork")
        assert shared.tolist() == [1, 2]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
