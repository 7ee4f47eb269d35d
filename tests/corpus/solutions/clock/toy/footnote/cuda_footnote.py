# {kind: honest, row: late, status: passed}
"""Twin of `cuda_finishes_its_tail_in_the_claim`: the same, in order."""

import itertools

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, columns: int, hidden: int, depth: int) -> None:
        super().__init__()
        widths = [columns, *[hidden] * depth, columns]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y[:-1].copy_(x[:-1])
        last = x[-1]
        for layer in self.layers:
            last = torch.tanh(layer(last))
        y[-1].copy_(last)
        return y
