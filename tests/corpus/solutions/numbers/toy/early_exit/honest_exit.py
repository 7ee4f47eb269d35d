# {kind: honest, row: drawn inputs, status: passed}
"""The same in one call of PyTorch's attention."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj, self.exit = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = (part[None, None] for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v)[0, 0])
        return x, F.softmax(self.exit(x), -1)
