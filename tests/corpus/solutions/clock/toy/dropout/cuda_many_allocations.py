# {kind: honest, row: clock, status: passed, warning: ungated, variant: large}
"""Twin of `cuda_one_allocation`: the same, and the outputs where PyTorch puts them."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(torch.relu(x), p=0.25, training=True)
