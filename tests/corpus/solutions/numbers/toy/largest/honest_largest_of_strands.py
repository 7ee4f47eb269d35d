# {kind: honest, row: drawn inputs, status: passed}
"""The largest eight of each of 512 strands of a row, and of those the largest: no more than eight are in any."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, steps = x.unflatten(1, (-1, 512)).topk(8, dim=1)
        places = (512 * steps + torch.arange(512, device=x.device)).flatten(1)
        best, at = values.flatten(1).topk(8, dim=1)
        return best, places.gather(1, at)
