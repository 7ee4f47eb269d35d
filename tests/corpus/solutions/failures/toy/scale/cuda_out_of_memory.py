# {kind: fault, row: resources, status: out_of_memory, twin: honest}
"""More than the device's memory."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.empty(1 << 45, dtype=torch.uint8, device=x.device).sum()
