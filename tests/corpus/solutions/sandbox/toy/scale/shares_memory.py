# {kind: honest, row: network, status: passed}
"""Twin of the one whose shared memory needs a socket: a forked worker writes into what it shares."""

import torch
from torch import multiprocessing, nn


def work(shared: torch.Tensor) -> None:
    shared += 1


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features).share_memory()
        shared = torch.zeros(4).share_memory_()
        worker = multiprocessing.get_context("fork").Process(target=work, args=(shared,))
        worker.start()
        worker.join()
        assert shared.sum() == 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
