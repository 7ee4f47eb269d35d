# {kind: honest, row: late, status: passed}
"""Twin of the late thread: halves of the rows on two threads, both waited for."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.pool = ThreadPoolExecutor(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        middle = x.shape[0] // 2
        parts = [self.pool.submit(self.work, y, x, rows) for rows in (slice(0, middle), slice(middle, None))]
        for part in parts:
            part.result()
        return y

    @torch.no_grad()
    def work(self, y: torch.Tensor, x: torch.Tensor, rows: slice) -> None:
        y[rows] = torch.tanh(self.linear(x[rows]))
