# {kind: cheat, row: drawn inputs, status: incorrect, twin: honest_composed}
"""Every query looks at the 48 keys nearest to it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        place = torch.arange(q.shape[-2], device=q.device)
        far = (place[:, None] - place[None, :]).abs() > 48
        return scores.masked_fill(far, float("-inf")).softmax(dim=-1) @ v
