# {kind: honest, row: drawn inputs, status: passed}
"""The router's sums in two parts, so that other tokens go elsewhere."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(32, 64) / 8)
        self.weight = nn.Parameter(torch.randn(32, 64, 64) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x[:, :32] @ self.gate[:, :32].T + x[:, 32:] @ self.gate[:, 32:].T
        share, index = scores.softmax(1).topk(4, dim=1)
        made = torch.einsum("tkoi,ti->tko", self.weight[index].float(), x.float())
        return ((share / share.sum(1, keepdim=True)).float()[..., None] * made).sum(1).to(x.dtype)
