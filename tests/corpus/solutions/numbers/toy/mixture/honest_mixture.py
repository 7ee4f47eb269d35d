# {kind: honest, row: precision, status: passed}
"""All in float32 from the router on, the tokens of each expert in one product."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(32, 64) / 8)
        self.weight = nn.Parameter(torch.randn(32, 64, 64) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        share, index = (wide @ self.gate.float().T).topk(4, dim=1)
        share = share.softmax(1)
        out = torch.zeros_like(wide)
        for expert in range(32):
            token, place = torch.where(index == expert)
            out.index_add_(0, token, share[token, place, None] * (wide[token] @ self.weight[expert].float().T))
        return out.to(x.dtype)
