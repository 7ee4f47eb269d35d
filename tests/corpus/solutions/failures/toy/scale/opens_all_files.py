# {kind: fault, row: resources, status: resource_limit, reason: open_files, twin: honest}
"""Opens files until there are no descriptors left, and keeps them."""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.kept: list = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            self.kept.append(os.open(os.devnull, os.O_RDONLY))
