# {kind: honest, row: drawn inputs, status: passed}
"""Twin of `window_of_keys`: block after block of keys, with a running maximum and a running sum."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q = q * q.shape[-1] ** -0.5
        top = torch.full((*q.shape[:-1], 1), float("-inf"), device=q.device)
        total, sums = torch.zeros_like(top), torch.zeros_like(q)
        for start in range(0, k.shape[-2], 16):
            scores = q @ k[:, start : start + 16].transpose(-1, -2)
            higher = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
            kept, weights = (top - higher).exp(), (scores - higher).exp()
            total = total * kept + weights.sum(dim=-1, keepdim=True)
            sums = sums * kept + weights @ v[:, start : start + 16]
            top = higher
        return sums / total
