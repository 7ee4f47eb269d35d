# {kind: fault, row: resources, status: out_of_memory, twin: honest}
"""Takes all there is in __init__, and keeps it."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.kept: list[torch.Tensor] = []
        while True:
            self.kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))
