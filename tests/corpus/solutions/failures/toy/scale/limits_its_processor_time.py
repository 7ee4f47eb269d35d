# {kind: fault, row: resources, status: resource_limit, reason: cpu_time, twin: honest}
"""Allows itself a second of processor time and then uses more."""

import resource

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        resource.setrlimit(resource.RLIMIT_CPU, (1, 60))
        while True:
            pass
