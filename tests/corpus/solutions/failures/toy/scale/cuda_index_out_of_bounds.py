# {kind: fault, row: device, status: runtime_error, reason: device_assert, twin: honest}
"""An index outside its tensor, in one of torch's own kernels."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        index = torch.full((x.shape[1],), x.shape[1] + 5, device=x.device)
        return torch.tanh(self.linear(x))[:, index]
