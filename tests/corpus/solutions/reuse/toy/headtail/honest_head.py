# {kind: honest, row: aliasing, status: passed}
"""Twin of `copies_its_tail_once`: the head is a view, as it may be, and the tail a copy each time."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.narrow(0, 0, 1), x[1:].clone()
