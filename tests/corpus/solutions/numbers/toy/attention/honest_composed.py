# {kind: honest, row: constants, status: passed}
"""Twin of the wrong ones: scores, softmax and sum written out."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        return scores.softmax(dim=-1) @ v
