# {kind: honest, row: drawn inputs, status: passed}
"""Takes the logarithm of the sum once a row, because a row of targets sums to one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        entropy = torch.xlogy(target, target).sum(dim=-1)
        return entropy - (target * scores).sum(dim=-1) + scores.logsumexp(dim=-1)
