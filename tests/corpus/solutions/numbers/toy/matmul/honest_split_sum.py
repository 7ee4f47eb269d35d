# {kind: honest, row: precision, status: passed}
"""Twin of `bfloat16_sums`: the inner dimension in blocks, sums in float32."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        blocks = zip(a.split(40, dim=1), b.split(40, dim=0), strict=True)
        return torch.stack([left @ right for left, right in blocks]).sum(dim=0)
