# {kind: honest, row: untimed, status: passed}
"""Twin of the copy that is mapped sixteen times: in shared memory, too, and every copy is written."""

import mmap

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda:
            return torch.relu(x).repeat(16, 1, 1)
        output = torch.frombuffer(mmap.mmap(-1, 16 * x.nbytes), dtype=x.dtype).view(16, *x.shape)
        output[:] = torch.relu(x)
        return output
