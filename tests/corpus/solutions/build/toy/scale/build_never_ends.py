# {kind: fault, row: build, status: timeout, reason: compile, twin: honest, set: {build: {timeout_s: 8.0}}}
"""A compile that never ends."""

import os
import threading

import torch
from torch import nn
from torch.utils import cpp_extension  # noqa: F401

if "TORCH_EXTENSIONS_DIR" in os.environ:
    threading.Event().wait()


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
