# {kind: honest, row: slow baseline, status: passed, set: {lanes: 2}}
"""Twin of `cuda_spins_beside_another_lane`, and beside it on the card: its times should not tell of that."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.linear.bias, x, self.linear.weight.T).tanh_()
