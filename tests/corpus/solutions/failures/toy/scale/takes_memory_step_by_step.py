# {kind: fault, row: resources, status: out_of_memory, reason: out_of_memory, twin: honest}
"""Allows itself two gigabytes of address space more than it has, and takes them."""

import resource
from pathlib import Path

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.kept: list = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + (2 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        while True:
            self.kept.append(torch.empty(1 << 28, dtype=torch.uint8))
